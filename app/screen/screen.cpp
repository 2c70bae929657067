// SPDX-License-Identifier: Apache-2.0
#include "screen.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// Included after the standard headers, because it defines macros such as `timeout`.
#include <curses.h>

#include "base/error.h"
#include "screen_frame.h"

namespace saturate {

namespace {

// Chinese text and the blocks of graphs need a UTF-8 locale; many containers set none.
void want_utf8() {
    std::setlocale(LC_CTYPE, "");
    if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

int attributes(Tone tone, bool colour) {
    switch (tone) {
        case Tone::title:
            return A_BOLD;
        case Tone::dim:
            return A_DIM;
        case Tone::good:
            return colour ? COLOR_PAIR(1) : A_NORMAL;
        case Tone::middling:
            return colour ? COLOR_PAIR(2) : A_BOLD;
        case Tone::bad:
            return colour ? COLOR_PAIR(3) | A_BOLD : A_REVERSE;
        case Tone::power:
            return colour ? COLOR_PAIR(4) : A_NORMAL;
        case Tone::plain:
            break;
    }
    return A_NORMAL;
}

}  // namespace

struct Screen::Impl {
    SCREEN* terminal = nullptr;
    bool colour = false;
    FrameSettings settings;
    FrameHistory history, shown_history;
    Snapshot shown;
    bool has_shown = false;

    void draw() const {
        if (!has_shown) return;
        ::erase();
        int row = 0;
        for (const FrameLine& line : make_frame(shown, shown_history, settings)) {
            ::move(row++, 0);
            for (const Span& span : line) {
                ::attrset(attributes(span.tone, colour));
                ::addstr(span.text.c_str());
            }
        }
        ::refresh();
    }

    // Asks the terminal for its size, which works no matter who handles SIGWINCH. Returns true if
    // the size changed.
    bool follow_size() {
        winsize size{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
            return false;
        if (settings.rows == size.ws_row && settings.columns == size.ws_col) return false;
        settings.rows = size.ws_row;
        settings.columns = size.ws_col;
        ::resizeterm(size.ws_row, size.ws_col);
        ::clear();
        return true;
    }

    // Moves through all GPUs and "all", which is -1.
    void choose_gpu(int step) {
        int places = static_cast<int>(shown.gpus.size()) + 1;
        settings.selected = (settings.selected + 1 + step + places) % places - 1;
    }
};

Screen::Screen(const ScreenSettings& settings) : impl_(std::make_unique<Impl>()) {
    want_utf8();
    const char* kind = std::getenv("TERM");
    impl_->terminal = kind && *kind ? ::newterm(nullptr, stdout, stdin) : nullptr;
    if (!impl_->terminal) {
        throw MachineError(
            {.found = std::string("this terminal cannot show the live view: TERM is ") +
                      (kind && *kind ? kind : "not set"),
             .expected = "a known terminal type, such as xterm-256color",
             .fix = "saturate monitor | cat  prints lines instead"});
    }
    ::cbreak();
    ::noecho();
    ::nodelay(stdscr, TRUE);
    ::keypad(stdscr, TRUE);
    ::set_escdelay(25);
    ::curs_set(0);
    impl_->colour = settings.colour && ::has_colors();
    if (impl_->colour) {
        ::start_color();
        ::use_default_colors();
        ::init_pair(1, COLOR_GREEN, -1);
        ::init_pair(2, COLOR_YELLOW, -1);
        ::init_pair(3, COLOR_RED, -1);
        ::init_pair(4, COLOR_CYAN, -1);
    }
    impl_->settings.language = settings.language;
    impl_->settings.thresholds = settings.thresholds;
    impl_->settings.columns = COLS;
    impl_->settings.rows = LINES;
    impl_->follow_size();
}

Screen::~Screen() {
    ::endwin();
    ::delscreen(impl_->terminal);
}

void Screen::update(const Snapshot& snapshot) {
    impl_->history.add(snapshot);
    if (impl_->settings.paused) return;
    impl_->shown = snapshot;
    impl_->shown_history = impl_->history;
    impl_->has_shown = true;
    impl_->draw();
}

Screen::Key Screen::key() {
    bool changed = impl_->follow_size();
    Key out = Key::none;
    for (int typed; (typed = ::getch()) != ERR;) {
        switch (typed) {
            case 'q':
            case 'Q':
                out = Key::quit;
                break;
            case 'p':
            case ' ':
                impl_->settings.paused = !impl_->settings.paused;
                changed = true;
                break;
            case 'g':
            case KEY_DOWN:
            case KEY_RIGHT:
                impl_->choose_gpu(1);
                changed = true;
                break;
            case KEY_UP:
            case KEY_LEFT:
                impl_->choose_gpu(-1);
                changed = true;
                break;
            case 'u':
                impl_->settings.unit =
                    static_cast<MemoryUnit>((static_cast<int>(impl_->settings.unit) + 1) % 3);
                changed = true;
                break;
            case KEY_RESIZE:
                changed = impl_->follow_size() || changed;
                break;
            default:
                break;
        }
    }
    if (changed) impl_->draw();
    return out;
}

int Screen::input_fd() const { return STDIN_FILENO; }

}  // namespace saturate
