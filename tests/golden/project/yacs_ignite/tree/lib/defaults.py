from yacs.config import CfgNode as CN

_C = CN()
_C.DATA = CN()
_C.DATA.WORKERS = 2
_C.DATA.SIZE = 64
_C.SOLVER = CN()
_C.SOLVER.LR = 0.1
_C.SOLVER.GAMMA = 0.5
_C.SOLVER.NAME = 'SGD'
