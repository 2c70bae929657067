// SPDX-License-Identifier: Apache-2.0
#include "report/http_guard.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>

#include "base/error.h"
#include "base/host.h"
#include "base/text.h"

namespace saturate {

namespace {

// Browsers keep cookies per host, not per port: without the port in the name, two servers would
// replace each other's cookies. The port is that of the browser's request, also through a tunnel.
std::string cookie_name(std::string_view host) {
    std::size_t from = host.starts_with('[') ? host.find(']') : 0;
    std::size_t colon = from == std::string_view::npos ? from : host.find(':', from);
    if (colon == std::string_view::npos) return "saturate_token";
    std::string_view port = host.substr(colon + 1);
    bool is_number = !port.empty() && port.find_first_not_of("0123456789") == port.npos;
    return is_number ? fmt::format("saturate_token_{}", port) : "saturate_token";
}

// "[::1]:8765" -> "[::1]", "localhost:8765" -> "localhost"
std::string_view without_port(std::string_view host) {
    std::size_t from = host.starts_with('[') ? host.find(']') : 0;
    if (from == std::string_view::npos) return host;
    std::size_t colon = host.find(':', from);
    return host.substr(0, colon);
}

std::string_view cookie_of(const HttpRequest& request) {
    std::string start = cookie_name(request.host) + "=";
    for (std::string_view part : split(request.cookie, ';')) {
        part = trim(part);
        if (part.starts_with(start)) return part.substr(start.size());
    }
    return {};
}

std::string same_place(const HttpRequest& request) {
    // Use one slash in front; two slashes would mean another host.
    std::size_t from = request.path.find_first_not_of('/');
    std::string out = "/" + url_encoded(from == std::string::npos ? "" : request.path.substr(from));
    char before = '?';
    for (const auto& [name, value] : request.query) {
        if (name == "token") continue;
        out += fmt::format("{}{}={}", before, url_encoded(name), url_encoded(value));
        before = '&';
    }
    return out;
}

}  // namespace

HttpGuard::HttpGuard(std::vector<std::string> names, std::string token)
    : names_(std::move(names)), token_(std::move(token)) {
    for (std::string& name : names_) name = lower(name);
}

HttpGuard HttpGuard::for_address(const HttpAddress& address, std::string token) {
    std::vector<std::string> names{"127.0.0.1", "localhost", "[::1]"};
    bool is_v6 = address.host.find(':') != std::string::npos;
    names.push_back(is_v6 ? fmt::format("[{}]", address.host) : address.host);
    if (!address.is_loopback()) {
        if (std::string name = host_name(); !name.empty()) names.push_back(std::move(name));
    }
    return HttpGuard(std::move(names), std::move(token));
}

HttpGuard HttpGuard::for_metrics(const HttpAddress& address) {
    HttpGuard guard = for_address(address, "");
    guard.is_for_scrapers_ = !address.is_loopback();
    return guard;
}

bool HttpGuard::is_ours(std::string_view host_and_port) const {
    std::string name = lower(without_port(host_and_port));
    if (name.empty()) return false;
    if (std::ranges::find(names_, name) != names_.end()) return true;
    bool is_figures =
        name.starts_with('[') || name.find_first_not_of("0123456789.") == std::string::npos;
    // Nobody can make a numeric address point to another machine, so with a token any of them is
    // fine. A scraper may also use our name with its domain.
    if (is_for_scrapers_)
        return is_figures || std::ranges::any_of(names_, [&](const std::string& own) {
                   return own == lower(host_name()) && name.starts_with(own + ".");
               });
    return !token_.empty() && is_figures;
}

bool HttpGuard::is_token(std::string_view given) const {
    // Takes the same time wherever the texts differ.
    unsigned differs = given.size() == token_.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(given.size(), token_.size()); ++i)
        differs |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token_[i]);
    return differs == 0;
}

std::optional<HttpReply> HttpGuard::refusal(const HttpRequest& request) const {
    if (!is_ours(request.host))
        return HttpReply::text(421, "this server does not answer to that host name\n");
    if (!request.origin.empty() && request.origin != "http://" + request.host)
        return HttpReply::text(403, "not for pages of other sites\n");
    if (token_.empty() || is_token(cookie_of(request))) return std::nullopt;
    constexpr std::string_view kBearer = "Bearer ";
    if (request.authorization.starts_with(kBearer) &&
        is_token(std::string_view(request.authorization).substr(kBearer.size())))
        return std::nullopt;
    if (!is_token(request.value("token")))
        return HttpReply::text(401, "a token is needed: open the address that serve printed\n");
    HttpReply out = HttpReply::text(303, "");
    out.headers = {{"Location", same_place(request)},
                   {"Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/",
                                              cookie_name(request.host), token_)},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cache-Control", "no-store"}};
    return out;
}

std::string fresh_token() {
    unsigned char bytes[16];
    if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
        throw MachineError({.found = "no random numbers from the kernel", .expected = "getrandom"});
    std::string out;
    for (unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
}

std::string url_encoded(std::string_view text) {
    std::string out;
    for (char c : text) {
        bool is_plain = std::isalnum(static_cast<unsigned char>(c)) ||
                        std::string_view("-._~/").find(c) != std::string_view::npos;
        out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace saturate
