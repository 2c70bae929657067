// SPDX-License-Identifier: Apache-2.0
// Decides who may read the pages of a server on this machine. A page of another site can make a
// browser send requests to 127.0.0.1, and can let its own host name point there, so Host and Origin
// must be ours. Access from other machines needs a token. Pure functions of the request; may be
// used from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/http.h"

namespace saturate {

class HttpGuard {
  public:
    // `names` are the host names that a browser may use for us, without ports. With an empty token
    // no token is needed.
    HttpGuard(std::vector<std::string> names, std::string token);
    // Accepts 127.0.0.1, localhost and [::1]; for other addresses also the address itself and the
    // name of the machine.
    static HttpGuard for_address(const HttpAddress& address, std::string token);

    // For metrics, which need no token. If other machines have access, also accepts any numeric
    // address and our name with a domain, because scrapers are configured with these.
    static HttpGuard for_metrics(const HttpAddress& address);

    // Returns the reply that refuses the request, or nullopt. Turns a token in the query into a
    // cookie and redirects the browser to the same address without the token, to keep it out of
    // history and links.
    [[nodiscard]] std::optional<HttpReply> refusal(const HttpRequest& request) const;
    [[nodiscard]] const std::string& token() const { return token_; }

  private:
    [[nodiscard]] bool is_ours(std::string_view host_and_port) const;
    [[nodiscard]] bool is_token(std::string_view given) const;

    std::vector<std::string> names_;
    std::string token_;
    bool is_for_scrapers_ = false;
};

// Returns 32 hexadecimal digits from the kernel's random source.
[[nodiscard]] std::string fresh_token();
// Encodes text for a query: everything except letters, digits and -._~/ becomes %XX.
[[nodiscard]] std::string url_encoded(std::string_view text);

}  // namespace saturate
