"""What `size` chooses, without what it advises beside that: laws of the number of GPUs ask for nothing else."""

from service.engine.answers.described import Described, described
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.figures import figures
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.ranking import best


def chosen(question: SizeQuestion) -> Deployment:
    """Return the deployment that `size` answers with."""
    return best(deployments(question), question)


def gpus(question: SizeQuestion) -> float:
    """Return how many GPUs `size` answers with; infinitely many where no number of them does."""
    deployment = chosen(question)
    return deployment.gpus if deployment.is_feasible else float("inf")


def told(question: SizeQuestion) -> Described:
    """Return what `size` says of its deployment, latencies included."""
    deployment = chosen(question).with_times(question.timers)
    return described(question, deployment, figures(deployment, deployment.capacity))
