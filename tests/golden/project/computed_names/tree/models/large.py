from .small import make as make_small


def make(options):
    return make_small(options)
