// SPDX-License-Identifier: Apache-2.0
// Who may read what a server on this machine shows. A page of another site can make a browser ask
// 127.0.0.1, and a name that it owns can be made to mean 127.0.0.1: Host and Origin must be ours.
// Beyond this machine a token is needed. Pure functions of the request; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/http.h"

namespace saturate {

class HttpGuard {
  public:
    // `names` are the hosts that a browser may call us by, without ports; an empty token asks for
    // none.
    HttpGuard(std::vector<std::string> names, std::string token);
    // 127.0.0.1, localhost and [::1]; also the address itself, and the machine's own name where it
    // is not a loopback address.
    static HttpGuard for_address(const HttpAddress& address, std::string token);

    // For metrics, which have no token. Beyond this machine also any address in figures and our
    // name in a domain, as scrapers are told them.
    static HttpGuard for_metrics(const HttpAddress& address);

    // What to answer instead, or nothing. A token in the query becomes a cookie, and the browser is
    // sent to the same place without it, so that it stays in no history and no link.
    [[nodiscard]] std::optional<HttpReply> refusal(const HttpRequest& request) const;
    [[nodiscard]] const std::string& token() const { return token_; }

  private:
    [[nodiscard]] bool is_ours(std::string_view host_and_port) const;
    [[nodiscard]] bool is_token(std::string_view given) const;

    std::vector<std::string> names_;
    std::string token_;
    bool is_for_scrapers_ = false;
};

// 32 hexadecimal digits from the kernel's random source.
[[nodiscard]] std::string fresh_token();
// "name=a b" as it goes into a query: everything but letters, digits and -._~/ as %XX.
[[nodiscard]] std::string url_encoded(std::string_view text);

}  // namespace saturate
