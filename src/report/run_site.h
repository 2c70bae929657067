// SPDX-License-Identifier: Apache-2.0
// What `serve` answers: the list of runs, the page of one or several, the same as files, and what a
// page listens to. Pages are made from the state of the last tick(), once for everybody who asks.
// answer() from any thread; tick() from one.
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
    bool follows_newest = false;  // "/" is the newest run, not the list
};

class RunSite {
  public:
    RunSite(RunShelf shelf, SiteSettings settings);

    void tick();
    [[nodiscard]] HttpReply answer(const HttpRequest& request);
    // The state of what a channel shows, as it was at the last tick.
    [[nodiscard]] std::string version(const std::string& channel) const;

  private:
    struct Place;
    [[nodiscard]] std::shared_ptr<const Listing> listing() const;
    [[nodiscard]] HttpReply page(const Place& place, const Listing& listing);
    [[nodiscard]] std::string render(const Place& place, const Listing& listing,
                                     const std::string& version);

    SiteSettings settings_;
    mutable std::mutex listing_mutex_;
    std::shared_ptr<const Listing> listing_;  // of the last tick

    std::mutex render_mutex_;  // one page is made at a time, for all who wait for it
    RunShelf shelf_;           // scanned by tick(), viewed under the lock
    struct Made {
        std::string version;
        std::shared_ptr<const std::string> content;
    };
    std::map<std::string, Made> made_;
};

}  // namespace saturate
