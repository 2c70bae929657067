# SPDX-License-Identifier: Apache-2.0
# A window of the in-process profiler, for versions of torch that do not answer on the socket of `saturate run`. It
# stops the training while it writes; the socket does not.
import os

from . import RUN_DIR, say


class Window:
    def __init__(self, torch, wanted):
        self.left = wanted
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_initialized():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        try:
            self.profile = torch.profiler.profile(activities=activities, record_shapes=True)
            self.profile.start()
        except Exception as error:  # somebody else's profiler runs already
            self.profile = None
            say("no profiler window: %s" % error)

    def after_step(self):
        """True when the window is over."""
        if self.profile is None:
            return True
        self.left -= 1
        if self.left >= 0:
            return False
        try:
            self.profile.stop()
            path = os.path.join(RUN_DIR, "trace_%d.json" % os.getpid())
            self.profile.export_chrome_trace(path + ".part")
            os.replace(path + ".part", path)
        except Exception as error:
            say("no profiler window: %s" % error)
        self.profile = None
        return True
