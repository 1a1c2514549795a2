"""What failed on a9aece5, asked of any checkout over HTTP and the command line: `make seen [CHECKOUT=DIR]`.

Nothing of the checkout is imported here: its server is started as it is, and only what it answers counts.
"""
