// SPDX-License-Identifier: Apache-2.0
#include "report/http.h"

namespace saturate {

std::string HttpRequest::value(std::string_view name) const {
    for (const auto& [key, value] : query) {
        if (key == name) return value;
    }
    return "";
}

std::vector<std::string> HttpRequest::values(std::string_view name) const {
    std::vector<std::string> out;
    for (const auto& [key, value] : query) {
        if (key == name) out.push_back(value);
    }
    return out;
}

HttpReply HttpReply::text(unsigned status, std::string text) {
    HttpReply out{.status = status};
    out.content = std::make_shared<std::string>(std::move(text));
    return out;
}

}  // namespace saturate
