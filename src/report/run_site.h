// SPDX-License-Identifier: Apache-2.0
// The replies of `serve`: the list of runs, pages of one or several runs, the same as files, and
// the streams of live pages. Each page is made once for all clients, from the state of the last
// tick(). Call answer() from any thread, tick() from one thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "report/http.h"
#include "report/run_shelf.h"
#include "words/words.h"

namespace saturate {

struct SiteSettings {
    Language language = Language::english;
    bool follows_newest = false;  // "/" shows the newest run, not the list
};

class RunSite {
  public:
    RunSite(RunShelf shelf, SiteSettings settings);

    void tick();
    [[nodiscard]] HttpReply answer(const HttpRequest& request);
    // Returns the version of the channel's content at the last tick.
    [[nodiscard]] std::string version(const std::string& channel) const;

  private:
    struct Place;
    [[nodiscard]] std::shared_ptr<const Listing> listing() const;
    [[nodiscard]] HttpReply page(const Place& place, const Listing& listing);
    [[nodiscard]] std::string render(const Place& place, const Listing& listing,
                                     const std::string& version);

    SiteSettings settings_;
    mutable std::mutex listing_mutex_;
    std::shared_ptr<const Listing> listing_;  // from the last tick

    std::mutex render_mutex_;  // one page is made at a time, for all waiting clients
    RunShelf shelf_;           // tick() scans it; view() needs render_mutex_
    struct Made {
        std::string version;
        std::shared_ptr<const std::string> content;
    };
    std::map<std::string, Made> made_;
};

}  // namespace saturate
