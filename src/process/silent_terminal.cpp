// SPDX-License-Identifier: Apache-2.0
#include "process/silent_terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace saturate {

namespace {

constexpr winsize kTerminalSize{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
constexpr std::size_t kTerminalEnds = 1000;  // each read takes one, and a script may read again

int open_far_end() {
    int out = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (out < 0) return -1;
    ::fcntl(out, F_SETFL, O_NONBLOCK);
    if (::grantpt(out) == 0 && ::unlockpt(out) == 0) return out;
    ::close(out);
    return -1;
}

}  // namespace

SilentTerminal::SilentTerminal() : far_end_(open_far_end()) {
    char name[64];
    if (far_end_ < 0 || ::ptsname_r(far_end_, name, sizeof name) != 0) return;
    terminal_ = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    if (terminal_ < 0 || ::tcgetattr(terminal_, &settings) != 0) return;
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);  // no echo: nobody would read it
    ::tcsetattr(terminal_, TCSANOW, &settings);
    winsize size = kTerminalSize;
    ::ioctl(far_end_, TIOCSWINSZ, &size);
    std::string ends(kTerminalEnds, static_cast<char>(settings.c_cc[VEOF]));
    [[maybe_unused]] ssize_t wrote = ::write(far_end_, ends.data(), ends.size());
}

SilentTerminal::~SilentTerminal() {
    if (terminal_ >= 0) ::close(terminal_);
    if (far_end_ >= 0) ::close(far_end_);
}

}  // namespace saturate
