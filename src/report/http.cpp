// SPDX-License-Identifier: Apache-2.0
#include "report/http.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

namespace {

constexpr unsigned kConnections = 32;
constexpr unsigned kConnectionsPerClient = 16;
constexpr unsigned kIdleSeconds = 5;
constexpr std::size_t kRequestBytes = 16 * 1024;  // request line and headers
constexpr std::size_t kPortMax = 65535;

// libmicrohttpd, loaded once and kept: its threads may outlive a server by a moment.
struct Microhttpd {
    decltype(&MHD_start_daemon) start_daemon = nullptr;
    decltype(&MHD_stop_daemon) stop_daemon = nullptr;
    decltype(&MHD_create_response_from_buffer) create_response = nullptr;
    decltype(&MHD_add_response_header) add_header = nullptr;
    decltype(&MHD_queue_response) queue_response = nullptr;
    decltype(&MHD_destroy_response) destroy_response = nullptr;
    bool is_whole = false;

    template <typename Function>
    bool load(void* library, Function& function, const char* symbol) {
        function = reinterpret_cast<Function>(::dlsym(library, symbol));
        return function != nullptr;
    }

    Microhttpd() {
        void* library = ::dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
        is_whole = library && load(library, start_daemon, "MHD_start_daemon") &&
                   load(library, stop_daemon, "MHD_stop_daemon") &&
                   load(library, create_response, "MHD_create_response_from_buffer") &&
                   load(library, add_header, "MHD_add_response_header") &&
                   load(library, queue_response, "MHD_queue_response") &&
                   load(library, destroy_response, "MHD_destroy_response");
    }
};

const Microhttpd& microhttpd() {
    static const Microhttpd library;
    return library;
}

struct Page {
    std::string content_type;
    std::string content;
};

// An address in the form that the sockets want.
struct Sockaddr {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

std::optional<Sockaddr> resolve(const HttpAddress& address) {
    Sockaddr out;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    if (::inet_pton(AF_INET, address.host.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(address.port);
        out.length = sizeof *v4;
        return out;
    }
    if (::inet_pton(AF_INET6, address.host.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(address.port);
        out.length = sizeof *v6;
        return out;
    }
    return std::nullopt;
}

// A listening socket of our own, because libmicrohttpd does not say why it could not start.
int listen_on(const HttpAddress& address, std::string_view option) {
    Sockaddr where = resolve(address).value();
    int fd = ::socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;
    if (fd >= 0) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&where.storage), where.length) == 0 &&
        ::listen(fd, kConnections) == 0)
        return fd;
    int error = errno;
    if (fd >= 0) ::close(fd);
    if (error == EADDRINUSE)
        throw UserError(
            {.found = fmt::format("{}: {} is in use by another program", option, address.text()),
             .expected = "a free port",
             .fix = fmt::format("{}={}", option, HttpAddress{address.host, 0}.text())});
    if (error == EADDRNOTAVAIL)
        throw UserError(
            {.found = fmt::format("{}: {} is no address of this machine", option, address.host),
             .expected = "127.0.0.1, 0.0.0.0 for every network, or an address of this machine"});
    if (error == EACCES)
        throw UserError({.found = fmt::format("{}: port {} needs root", option, address.port),
                         .expected = "a port from 1024 to 65535"});
    throw MachineError({.found = fmt::format("{}: no socket: {}", option, std::strerror(error))});
}

MHD_Result reply(MHD_Connection* connection, unsigned status, const Page& page,
                 bool with_allow = false) {
    // The copy is the library's: the page may be published anew while it is sent.
    MHD_Response* response = microhttpd().create_response(
        page.content.size(), const_cast<char*>(page.content.data()), MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    microhttpd().add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.content_type.c_str());
    microhttpd().add_header(response, "X-Content-Type-Options", "nosniff");
    if (with_allow) microhttpd().add_header(response, MHD_HTTP_HEADER_ALLOW, "GET");
    MHD_Result result = microhttpd().queue_response(connection, status, response);
    microhttpd().destroy_response(response);
    return result;
}

Page plain(std::string text) { return {"text/plain; charset=utf-8", std::move(text)}; }

}  // namespace

HttpAddress HttpAddress::parse(std::string_view text, std::string_view option) {
    HttpAddress out;
    std::string_view port;
    if (text.starts_with('[')) {
        std::size_t close = text.find(']');
        // An open bracket leaves a host that is no address.
        out.host = close == std::string_view::npos ? text : text.substr(1, close - 1);
        std::string_view rest = text.substr(std::min(text.size(), out.host.size() + 2));
        if (rest.starts_with(':')) port = rest.substr(1);
    } else if (std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
        if (colon > 0) out.host = text.substr(0, colon);
        port = text.substr(colon + 1);
    } else if (text.find('.') != std::string_view::npos) {
        out.host = text;
    } else {
        port = text;
    }
    std::optional<std::int64_t> number = port.empty() ? out.port : parse_integer(port);
    if (!number || *number < 0 || *number > static_cast<std::int64_t>(kPortMax) || !resolve(out)) {
        throw UserError(
            {.found = fmt::format("{} is {}", option, quoted(text)),
             .expected = "PORT, ADDRESS or ADDRESS:PORT, such as 9838 or 0.0.0.0:9838"});
    }
    out.port = static_cast<std::uint16_t>(*number);
    return out;
}

std::string HttpAddress::text() const {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                               : fmt::format("[{}]:{}", host, port);
}

struct HttpServer::Impl {
    HttpAddress address;
    std::mutex mutex;
    std::map<std::string, Page, std::less<>> pages;
    MHD_Daemon* daemon = nullptr;

    // Called by the server's thread, twice per request: first with the headers, then to answer.
    static MHD_Result answer(void* self, MHD_Connection* connection, const char* url,
                             const char* method, const char*, const char*,
                             std::size_t* upload_bytes, void** state) {
        static char headers_seen;
        if (std::strcmp(method, MHD_HTTP_METHOD_GET) != 0)
            return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain("GET only\n"), true);
        if (*upload_bytes > 0) return MHD_NO;  // a GET with a body: hung up on
        if (!*state) {
            *state = &headers_seen;
            return MHD_YES;
        }
        auto& impl = *static_cast<Impl*>(self);
        Page page;
        {
            std::lock_guard lock(impl.mutex);
            auto found = impl.pages.find(url);
            if (found == impl.pages.end()) {
                std::string known;
                for (const auto& [path, unused] : impl.pages) known += path + "\n";
                return reply(connection, MHD_HTTP_NOT_FOUND,
                             plain("not here; there is:\n" + known));
            }
            page = found->second;
        }
        return reply(connection, MHD_HTTP_OK, page);
    }
};

HttpServer::HttpServer(const HttpAddress& address, std::string_view option)
    : impl_(std::make_unique<Impl>()) {
    if (!microhttpd().is_whole)
        throw MachineError(
            {.found = fmt::format("{} needs libmicrohttpd.so.12, which is not there", option),
             .expected = "the package libmicrohttpd12",
             .fix = "apt-get install libmicrohttpd12"});
    int fd = listen_on(address, option);
    impl_->address = address;
    Sockaddr bound;
    bound.length = sizeof bound.storage;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) == 0) {
        impl_->address.port = ntohs(bound.storage.ss_family == AF_INET6
                                        ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
    }
    impl_->daemon = microhttpd().start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, &Impl::answer, impl_.get(),
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, kConnections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, kConnectionsPerClient, MHD_OPTION_CONNECTION_TIMEOUT,
        kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestBytes, MHD_OPTION_END);
    if (!impl_->daemon) {
        ::close(fd);
        throw MachineError({.found = fmt::format("{}: the web server did not start", option)});
    }
}

HttpServer::~HttpServer() {
    microhttpd().stop_daemon(impl_->daemon);  // closes the listening socket too
}

void HttpServer::publish(const std::string& path, std::string content_type, std::string content) {
    std::lock_guard lock(impl_->mutex);
    impl_->pages[path] = {std::move(content_type), std::move(content)};
}

HttpAddress HttpServer::address() const { return impl_->address; }

}  // namespace saturate
