// SPDX-License-Identifier: Apache-2.0
#include "report/http.h"

#include <fmt/format.h>
#include <microhttpd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/system_error.h"
#include "report/http_address.h"
#include "report/http_deadlines.h"

namespace saturate {

namespace {

constexpr std::size_t kRequestBytes = 16 * 1024;  // request line and headers
constexpr std::size_t kStreamBlock = 4096;

// One listener. The server's thread reads from it; without an event the connection is suspended,
// and push() resumes it. Only the newest event waits, to save memory if a client does not read.
class EventStream {
  public:
    EventStream(MHD_Connection* connection, std::string channel)
        : channel(std::move(channel)), connection_(connection) {}

    void offer(std::shared_ptr<const std::string> event) {
        std::lock_guard lock(mutex_);
        next_ = std::move(event);
        wake();
    }
    // Offers a comment only if no event is waiting.
    void beat(std::shared_ptr<const std::string> comment) {
        std::lock_guard lock(mutex_);
        if (next_ || now_) return;
        next_ = std::move(comment);
        wake();
    }
    void end() {
        std::lock_guard lock(mutex_);
        is_ended_ = true;
        wake();
    }
    // Called when the connection is closed: it must not be used any more.
    void forget() {
        std::lock_guard lock(mutex_);
        connection_ = nullptr;
        is_asleep_ = false;
    }

    ssize_t read(char* out, std::size_t room) {
        std::lock_guard lock(mutex_);
        if (!now_ && next_) {
            now_ = std::exchange(next_, nullptr);
            sent_ = 0;
        }
        if (now_) {
            std::size_t length = std::min(room, now_->size() - sent_);
            std::memcpy(out, now_->data() + sent_, length);
            sent_ += length;
            if (sent_ == now_->size()) now_ = nullptr;
            return static_cast<ssize_t>(length);
        }
        if (is_ended_) return MHD_CONTENT_READER_END_OF_STREAM;
        is_asleep_ = true;
        MHD_suspend_connection(connection_);
        return 0;
    }

    const std::string channel;

  private:
    void wake() {
        if (!is_asleep_) return;
        is_asleep_ = false;
        MHD_resume_connection(connection_);
    }

    std::mutex mutex_;
    MHD_Connection* connection_;
    std::shared_ptr<const std::string> now_, next_;
    std::size_t sent_ = 0;
    bool is_asleep_ = false;
    bool is_ended_ = false;
};

int socket_of(MHD_Connection* connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

std::string header(MHD_Connection* connection, const char* name) {
    const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value ? value : "";
}

// Uses the lengths, because a NUL inside a value does not end it.
MHD_Result take_argument(void* query, MHD_ValueKind, const char* key, std::size_t key_length,
                         const char* value, std::size_t value_length) {
    static_cast<decltype(HttpRequest::query)*>(query)->emplace_back(
        std::string(key, key_length), value ? std::string(value, value_length) : "");
    return MHD_YES;
}

HttpRequest request_of(MHD_Connection* connection, const char* url) {
    HttpRequest out{.path = url,
                    .query = {},
                    .host = header(connection, MHD_HTTP_HEADER_HOST),
                    .origin = header(connection, MHD_HTTP_HEADER_ORIGIN),
                    .cookie = header(connection, MHD_HTTP_HEADER_COOKIE),
                    .authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION)};
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, &take_argument, &out.query);
    return out;
}

MHD_Result queue(MHD_Connection* connection, MHD_Response* response, const HttpReply& reply) {
    if (!response) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply.content_type.c_str());
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : reply.headers)
        MHD_add_response_header(response, name.c_str(), value.c_str());
    MHD_Result result = MHD_queue_response(connection, reply.status, response);
    MHD_destroy_response(response);
    return result;
}

using Content = std::shared_ptr<const std::string>;

void free_content(void* content) { delete static_cast<Content*>(content); }

MHD_Result send(MHD_Connection* connection, const HttpReply& reply) {
    static const Content kEmpty = std::make_shared<std::string>();
    // Share the content: fifty clients of a page need its bytes only once.
    auto* content = new Content(reply.content ? reply.content : kEmpty);
    MHD_Response* response = MHD_create_response_from_buffer_with_free_callback_cls(
        (*content)->size(), const_cast<char*>((*content)->data()), &free_content, content);
    if (!response) free_content(content);
    return queue(connection, response, reply);
}

std::shared_ptr<const std::string> event_text(const std::string& data) {
    return std::make_shared<std::string>("data: " + data + "\n\n");
}

}  // namespace

struct HttpServer::Impl {
    HttpAddress address;
    HttpHandler handler;
    HttpRefusal refusal;
    MHD_Daemon* daemon = nullptr;
    mutable std::mutex mutex;  // guards the members below
    std::map<std::string, HttpReply, std::less<>> pages;
    std::set<std::shared_ptr<EventStream>> streams;
    bool is_ending = false;
    HttpLimits limits;
    HttpDeadlines deadlines;

    // Limits the time for the first request of a new connection. finish() limits it for the next.
    static void notice(void* self, MHD_Connection* connection, void**,
                       MHD_ConnectionNotificationCode code) {
        auto& impl = *static_cast<Impl*>(self);
        if (code == MHD_CONNECTION_NOTIFY_STARTED)
            impl.deadlines.set(socket_of(connection), impl.limits.request_time);
        else
            impl.deadlines.clear(socket_of(connection));
    }
    static void finish(void* self, MHD_Connection* connection, void**, MHD_RequestTerminationCode) {
        auto& impl = *static_cast<Impl*>(self);
        impl.deadlines.set(socket_of(connection), impl.limits.request_time);
    }

    // The server's thread calls this twice per request: first with the headers, then to answer.
    static MHD_Result answer(void* self, MHD_Connection* connection, const char* url,
                             const char* method, const char*, const char*,
                             std::size_t* upload_bytes, void** state) {
        static char headers_seen;
        auto& impl = *static_cast<Impl*>(self);
        if (std::strcmp(method, MHD_HTTP_METHOD_GET) != 0) {
            HttpReply reply = HttpReply::text(MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
            reply.headers.emplace_back(MHD_HTTP_HEADER_ALLOW, "GET");
            impl.deadlines.set(socket_of(connection), impl.limits.answer_time);
            return send(connection, reply);
        }
        if (*upload_bytes > 0) return MHD_NO;  // a GET with a body: close the connection
        if (!*state) {
            *state = &headers_seen;
            return MHD_YES;
        }
        HttpReply reply;
        try {
            reply = impl.reply_to(request_of(connection, url));
        } catch (const Failure& error) {
            reply =
                HttpReply::text(MHD_HTTP_INTERNAL_SERVER_ERROR, fmt::format("{}\n", error.what()));
        } catch (const std::system_error& error) {
            reply = HttpReply::text(MHD_HTTP_INTERNAL_SERVER_ERROR,
                                    fmt::format("{}\n", system_problem(error).text()));
        } catch (const std::exception& error) {
            reply = HttpReply::text(MHD_HTTP_INTERNAL_SERVER_ERROR,
                                    fmt::format("this is a bug of saturate: {}\n", error.what()));
        }
        if (!reply.channel.empty()) {
            impl.deadlines.clear(socket_of(connection));
            return impl.stream(connection, reply);
        }
        impl.deadlines.set(socket_of(connection), impl.limits.answer_time);
        return send(connection, reply);
    }

    HttpReply reply_to(const HttpRequest& request) const {
        if (refusal) {
            if (auto refused = refusal(request)) return *refused;
        }
        {
            std::lock_guard lock(mutex);
            auto found = pages.find(request.path);
            if (found != pages.end()) return found->second;
        }
        if (handler) return handler(request);
        std::lock_guard lock(mutex);
        std::string known;
        for (const auto& [path, unused] : pages) known += path + "\n";
        return HttpReply::text(MHD_HTTP_NOT_FOUND, "not found; this server has:\n" + known);
    }

    struct Listening {
        Impl* impl;
        std::shared_ptr<EventStream> stream;
    };

    static ssize_t read_stream(void* listening, std::uint64_t, char* out, std::size_t room) {
        return static_cast<Listening*>(listening)->stream->read(out, room);
    }

    static void end_stream(void* given) {
        std::unique_ptr<Listening> listening(static_cast<Listening*>(given));
        listening->stream->forget();
        std::lock_guard lock(listening->impl->mutex);
        listening->impl->streams.erase(listening->stream);
    }

    MHD_Result stream(MHD_Connection* connection, HttpReply reply) {
        auto listener = std::make_shared<EventStream>(connection, reply.channel);
        auto* listening = new Listening{this, listener};
        MHD_Response* response = MHD_create_response_from_callback(
            MHD_SIZE_UNKNOWN, kStreamBlock, &read_stream, listening, &end_stream);
        if (!response) {
            delete listening;
            return MHD_NO;
        }
        {
            std::lock_guard lock(mutex);
            // The first bytes show the client that it is connected.
            listener->offer(event_text(reply.content ? *reply.content : ""));
            if (is_ending) listener->end();
            streams.insert(listener);
        }
        reply.content_type = "text/event-stream";
        return queue(connection, response, reply);
    }

    [[nodiscard]] std::vector<std::shared_ptr<EventStream>> all_streams() const {
        std::lock_guard lock(mutex);
        return {streams.begin(), streams.end()};
    }
};

HttpServer::HttpServer(const HttpAddress& address, std::string_view option, HttpHandler handler,
                       const HttpLimits& limits, HttpRefusal refusal)
    : impl_(std::make_unique<Impl>()) {
    Descriptor socket = listen_on(address, option);
    impl_->address = address;
    impl_->address.port = bound_port(socket.get());
    impl_->handler = std::move(handler);
    impl_->refusal = std::move(refusal);
    impl_->limits = limits;
    // The library rejects a thread pool of size 1.
    unsigned threads = limits.threads > 1 ? limits.threads : 0;
    impl_->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
        &Impl::answer, impl_.get(), MHD_OPTION_LISTEN_SOCKET, socket.get(),
        MHD_OPTION_CONNECTION_LIMIT, limits.connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        limits.connections_per_client, MHD_OPTION_CONNECTION_TIMEOUT, limits.idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestBytes, MHD_OPTION_THREAD_POOL_SIZE, threads,
        MHD_OPTION_NOTIFY_CONNECTION, &Impl::notice, impl_.get(), MHD_OPTION_NOTIFY_COMPLETED,
        &Impl::finish, impl_.get(), MHD_OPTION_END);
    if (!impl_->daemon)
        throw MachineError({.found = fmt::format("{}: the web server did not start", option)});
    (void)socket.release();  // the daemon closes it
}

HttpServer::~HttpServer() {
    {
        std::lock_guard lock(impl_->mutex);
        impl_->is_ending = true;
    }
    // The library must not be stopped while a connection is suspended.
    for (const auto& stream : impl_->all_streams()) stream->end();
    MHD_stop_daemon(impl_->daemon);
}

void HttpServer::publish(const std::string& path, std::string content_type, std::string content) {
    HttpReply page{.content_type = std::move(content_type)};
    page.content = std::make_shared<std::string>(std::move(content));
    std::lock_guard lock(impl_->mutex);
    impl_->pages[path] = std::move(page);
}

HttpAddress HttpServer::address() const { return impl_->address; }

void HttpServer::push(const std::string& channel, const std::string& data) {
    auto event = event_text(data);
    for (const auto& stream : impl_->all_streams()) {
        if (stream->channel == channel) stream->offer(event);
    }
}

void HttpServer::beat() {
    auto comment = std::make_shared<std::string>(":\n\n");
    for (const auto& stream : impl_->all_streams()) stream->beat(comment);
}

std::vector<std::string> HttpServer::channels() const {
    std::lock_guard lock(impl_->mutex);
    std::set<std::string> out;
    for (const auto& stream : impl_->streams) out.insert(stream->channel);
    return {out.begin(), out.end()};
}

std::size_t HttpServer::listeners() const {
    std::lock_guard lock(impl_->mutex);
    return impl_->streams.size();
}

}  // namespace saturate
