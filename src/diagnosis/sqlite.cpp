// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <cctype>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/text.h"

namespace saturate {
namespace {

constexpr std::size_t kHeader = 100;

// Returns the path as a URI, with ? and % escaped.
std::string address_of(const std::string& file) {
    std::string address = "file:";
    for (char c : file) {
        auto byte = static_cast<unsigned char>(c);
        bool is_plain = std::isalnum(byte) || std::strchr("/._-", c);
        address += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
    }
    // immutable=1: no lock and no journal file, so that it works on a read-only disk.
    return address + "?mode=ro&immutable=1";
}

std::string select(const SqliteFile& file, std::string_view table,
                   std::initializer_list<std::string_view> columns) {
    std::string query;
    for (std::string_view column : columns) {
        query += query.empty() ? "SELECT " : ", ";
        query += file.has(table, column) ? fmt::format("\"{}\"", column) : "NULL";
    }
    return query + fmt::format(" FROM \"{}\"", table);
}

}  // namespace

void SqliteFile::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

SqliteFile::SqliteFile(const std::filesystem::path& path, Words words)
    : file_(path.string()), words_(std::move(words)) {
    std::error_code error;
    bytes_ = std::filesystem::file_size(path, error);
    std::string header(kHeader, '\0');
    std::ifstream stream(path, std::ios::binary);
    stream.read(header.data(), static_cast<std::streamsize>(header.size()));
    header.resize(static_cast<std::size_t>(stream.gcount()));
    check_length(header);
    open(address_of(file_), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    load_tables();
}

SqliteFile::SqliteFile(std::string content, std::string file, Words words)
    : file_(std::move(file)),
      content_(std::move(content)),
      bytes_(content_.size()),
      words_(std::move(words)) {
    check_length(content_);
    content_[18] = content_[19] = 1;  // in memory there is no write-ahead log
    open(":memory:", SQLITE_OPEN_READWRITE);
    auto size = static_cast<sqlite3_int64>(bytes_);
    int status =
        sqlite3_deserialize(db_.get(), "main", reinterpret_cast<unsigned char*>(content_.data()),
                            size, size, SQLITE_DESERIALIZE_READONLY);
    if (status != SQLITE_OK) damaged("the file");
    load_tables();
}

SqliteFile::~SqliteFile() = default;

bool SqliteFile::has(std::string_view table, std::string_view column) const {
    auto found = columns_.find(table);
    return found != columns_.end() && found->second.contains(column);
}

std::vector<std::string> SqliteFile::tables() const {
    std::vector<std::string> names;
    for (const auto& [name, columns] : columns_) names.push_back(name);
    return names;
}

void SqliteFile::fail(std::string found, std::string fix) const {
    throw UserError({.where = {file_},
                     .found = std::move(found),
                     .expected = words_.expected,
                     .fix = fix.empty() ? words_.fix : std::move(fix)});
}

void SqliteFile::damaged(std::string_view where) const {
    std::string_view why = db_ ? sqlite3_errmsg(db_.get()) : "out of memory";
    fail(
        fmt::format("cannot be read as SQLite: {} says {}", in_quotes(where), in_quotes(why, 200)));
}

void SqliteFile::open(const std::string& address, int flags) {
    sqlite3* db = nullptr;
    int status = sqlite3_open_v2(address.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
    db_.reset(db);
    if (status != SQLITE_OK) damaged("the file");
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
}

// Checks the size against the number of pages in the header, to report a file that was cut off.
void SqliteFile::check_length(std::string_view header) const {
    if (bytes_ == 0) fail("is empty");
    if (!header.starts_with(kSqliteStart)) fail("is not an SQLite file");
    if (header.size() < kHeader) fail(fmt::format("is cut off after {} bytes", bytes_));
    auto byte = [&](std::size_t at) {
        return std::uint64_t{static_cast<unsigned char>(header[at])};
    };
    std::uint64_t page = byte(16) << 8 | byte(17);
    if (page == 1) page = 65'536;
    std::uint64_t pages = byte(28) << 24 | byte(29) << 16 | byte(30) << 8 | byte(31);
    if (pages * page > bytes_)
        fail(fmt::format("is cut off: {} of {}", bytes_text(bytes_), bytes_text(pages * page)));
}

void SqliteFile::load_tables() {
    std::vector<std::string> names;
    SqliteRows tables(
        *this,
        SqliteRows::Query{"SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"},
        "the list of tables");
    while (tables.next()) names.emplace_back(tables.text(0));
    for (const std::string& name : names) {
        if (name.find('"') != std::string::npos) continue;
        std::set<std::string, std::less<>>& columns = columns_[name];
        SqliteRows rows(*this, SqliteRows::Query{fmt::format("PRAGMA table_xinfo(\"{}\")", name)},
                        name);
        while (rows.next()) {
            bool is_plain = rows.integer(6) == 0;  // others are computed
            if (is_plain) columns.emplace(rows.text(1));
        }
    }
}

SqliteRows::SqliteRows(const SqliteFile& file, const Query& query, std::string_view table)
    : file_(file), table_(table), most_(file.bytes() / 4 + 16) {
    int status = sqlite3_prepare_v2(file.db_.get(), query.text.c_str(), -1, &statement_, nullptr);
    if (status != SQLITE_OK) file_.damaged(table_);
}

SqliteRows::SqliteRows(const SqliteFile& file, std::string_view table,
                       std::initializer_list<std::string_view> columns)
    : SqliteRows(file, Query{select(file, table, columns)}, table) {}

SqliteRows::~SqliteRows() { sqlite3_finalize(statement_); }

bool SqliteRows::next() {
    int status = sqlite3_step(statement_);
    if (status == SQLITE_DONE) return false;
    if (status != SQLITE_ROW) file_.damaged(table_);
    // Pages that point at each other can yield rows for ever, but a row takes more than four bytes.
    if (++count_ > most_)
        file_.fail(fmt::format("is damaged: {} has more rows than the file can hold",
                               in_quotes(std::string_view(table_))));
    return true;
}

std::optional<std::int64_t> SqliteRows::integer(int column) const {
    if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) return std::nullopt;
    return sqlite3_column_int64(statement_, column);
}

std::string_view SqliteRows::text(int column) const {
    if (sqlite3_column_type(statement_, column) != SQLITE_TEXT) return {};
    const auto* start = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (!start) return {};
    return {start, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace saturate
