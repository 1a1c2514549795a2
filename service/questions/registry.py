"""Every question there is; HTTP and the command line make their ways to ask from this."""

from service.questions.asked import Question
from service.questions.capacity import CAPACITY
from service.questions.compare import COMPARE
from service.questions.recommend import RECOMMEND
from service.questions.replicas import REPLICAS
from service.questions.size import SIZE

QUESTIONS: tuple[Question, ...] = (SIZE, CAPACITY, REPLICAS, RECOMMEND, COMPARE)
