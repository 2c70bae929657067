// SPDX-License-Identifier: Apache-2.0
#include "support/fuzz_serve.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <map>
#include <random>

#include "support/serving.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSecret = "the-secret-that-nobody-may-read";

const std::vector<std::string>& pieces() {
    static const std::vector<std::string> kPieces = {
        "GET ",
        "POST ",
        "/",
        "/run",
        "/runs",
        "/events",
        "/report.html",
        "/report.json",
        "?id=",
        "&id=",
        "before",
        "after",
        "../",
        "..%2f",
        "%2e%2e/",
        "..\\",
        "%00",
        "%",
        "%zz",
        "secret.txt",
        "secret",
        "/etc/passwd",
        "/proc/self/environ",
        "//",
        "?",
        "#",
        "&",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        " HTTP/9.9\r\n",
        "\r\n",
        "\n",
        "\r\n\r\n",
        "Host: ",
        "localhost",
        "Origin: ",
        "http://localhost",
        "evil.example",
        "Cookie: saturate_token=",
        "Content-Length: ",
        "99999999999999999999",
        "-1",
        "Transfer-Encoding: chunked\r\n",
        "Range: bytes=0-18446744073709551615\r\n",
        "Expect: 100-continue\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "of=newest",
        "token=",
        "\xff\xfe",
        std::string("\0", 1),
        std::string(300, 'A'),
        std::string(20'000, 'B')};
    return kPieces;
}

class Requests {
  public:
    std::string next() {
        switch (draw(5)) {
            case 0:
                return noise(draw(600));
            case 1:
                return glued();
            case 2:
                return mutated("GET /run?id=before HTTP/1.1\r\nHost: localhost\r\n\r\n");
            case 3:
                return mutated("GET /report.html?id=../secret HTTP/1.1\r\nHost: localhost\r\n\r\n");
            default:
                return traversal();
        }
    }
    std::size_t draw(std::size_t below) { return random_() % below; }

  private:
    std::string noise(std::size_t length) {
        std::string out;
        for (std::size_t i = 0; i < length; ++i) out += static_cast<char>(draw(256));
        return out;
    }
    std::string glued() {
        std::string out;
        for (std::size_t n = 1 + draw(14); n > 0; --n) out += pieces()[draw(pieces().size())];
        return out;
    }
    std::string mutated(std::string text) {
        for (std::size_t n = 1 + draw(6); n > 0; --n) {
            std::size_t at = draw(text.size());
            if (draw(3) == 0) {
                text.insert(at, pieces()[draw(pieces().size())]);
            } else if (draw(2) == 0) {
                text[at] = static_cast<char>(draw(256));
            } else if (text.size() > 2) {
                text.erase(at, 1 + draw(3));
            }
            if (text.empty()) text = "G";
        }
        return text;
    }
    std::string traversal() {
        static const char* const kUps[] = {"../",   "..%2f",  "%2e%2e%2f",
                                           "..%5c", "....//", "%252e%252e/",
                                           "/",     "./",     "%c0%ae%c0%ae/"};
        std::string path;
        for (std::size_t n = 1 + draw(6); n > 0; --n) path += kUps[draw(std::size(kUps))];
        path += draw(2) == 0 ? "secret.txt" : "secret";
        const char* start = draw(2) == 0 ? "/" : draw(2) == 0 ? "/run?id=" : "/report.json?id=";
        return fmt::format("GET {}{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                           start, path);
    }
    std::mt19937 random_{42};
};

std::map<std::string, std::string> contents(const fs::path& folder) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        std::ifstream file(entry.path(), std::ios::binary);
        out[entry.path().string()] = entry.is_regular_file()
                                         ? std::string((std::istreambuf_iterator<char>(file)), {})
                                         : "a folder";
    }
    return out;
}

}  // namespace

std::string fuzz_serve(const std::string& binary, const fs::path& folder, double seconds) {
    write_run_record(folder / "runs/before", 50);
    write_run_record(folder / "runs/after", 50);
    write_run_record(folder / "secret", 7);
    std::ofstream(folder / "secret/steps.jsonl", std::ios::app) << kSecret << "\n";
    std::ofstream(folder / "secret.txt") << kSecret;
    for (const char* name : {"before", "after"})  // ended, so that their pages do not change
        std::ofstream(folder / "runs" / name / "summary.json") << R"({"schema":1,"ended":"done"})";
    auto before = contents(folder);
    Serving server(binary, {folder / "runs"});
    std::string page = http_body(http_get(server.port(), "/run?id=before"));
    Requests requests;
    std::size_t sent = 0, answered = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::deque<RawClient> open;  // some stay open, to reach the limits too
    while (std::chrono::steady_clock::now() < end) {
        RawClient client(server.port());
        client.send(requests.next());
        ++sent;
        if (requests.draw(4) == 0) {
            open.push_back(std::move(client));
            if (open.size() > 60) open.pop_front();
            continue;
        }
        ::shutdown(client.fd(), SHUT_WR);
        std::string answer = client.read_all(50);
        if (!answer.empty()) ++answered;
        if (answer.find(kSecret) != std::string::npos) return "an answer holds the secret";
    }
    open.clear();
    fmt::print("{} requests, {} answered\n", sent, answered);
    if (sent < 20 || answered == 0) return fmt::format("{} sent, {} answered", sent, answered);
    if (http_body(http_get(server.port(), "/run?id=before")) != page) return "the page has changed";
    if (contents(folder) != before) return "a file has changed";
#ifdef __SANITIZE_ADDRESS__
    constexpr long kMostKilobytes =
        1024 * 1024;  // ASan keeps 256 MB of freed memory, plus its shadow memory
#else
    constexpr long kMostKilobytes = 100 * 1024;
#endif
    if (long used = server.memory_kilobytes(); used > kMostKilobytes)
        return fmt::format("the server uses {} KB after {} requests", used, sent);
    int status = server.stop();
    return status == 0 ? "" : fmt::format("the server ended with {}", status);
}

}  // namespace saturate
