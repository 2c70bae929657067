// SPDX-License-Identifier: Apache-2.0
// Reads an SQLite file of unknown origin; the only user of sqlite3. Offers only plain tables with
// plain columns and hides views, virtual tables and computed columns, which a hostile file could
// misuse. Used from one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace saturate {

inline constexpr std::string_view kSqliteStart = "SQLite format 3";

class SqliteFile {
  public:
    // Both constructors throw UserError if the file is not a database, is cut off or is damaged.
    // `expected` and `fix` are parts of that message.
    struct Words {
        std::string expected;
        std::string fix;
    };
    SqliteFile(const std::filesystem::path& path, Words words);
    SqliteFile(std::string content, std::string file, Words words);  // unpacked, in memory
    ~SqliteFile();

    [[nodiscard]] const std::string& file() const { return file_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] bool has(std::string_view table) const { return columns_.contains(table); }
    [[nodiscard]] bool has(std::string_view table, std::string_view column) const;
    [[nodiscard]] std::vector<std::string> tables() const;
    [[noreturn]] void fail(std::string found, std::string fix = "") const;

  private:
    friend class SqliteRows;
    struct Close {
        void operator()(sqlite3* db) const;
    };
    void open(const std::string& address, int flags);
    void check_length(std::string_view header) const;
    void load_tables();
    [[noreturn]] void damaged(std::string_view where) const;

    std::string file_;
    std::string content_;  // sqlite3 reads it in place
    std::uint64_t bytes_ = 0;
    Words words_;
    std::unique_ptr<sqlite3, Close> db_;
    std::map<std::string, std::set<std::string, std::less<>>, std::less<>> columns_;
};

// Reads the rows of a table once, from first to last. Throws UserError if the file is damaged.
class SqliteRows {
  public:
    // Columns that the table lacks read as empty.
    SqliteRows(const SqliteFile& file, std::string_view table,
               std::initializer_list<std::string_view> columns);
    ~SqliteRows();
    SqliteRows(const SqliteRows&) = delete;
    SqliteRows& operator=(const SqliteRows&) = delete;

    bool next();
    [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
    [[nodiscard]] std::string_view text(int column) const;  // valid until next()

  private:
    friend class SqliteFile;
    struct Query {
        std::string text;
    };
    SqliteRows(const SqliteFile& file, const Query& query, std::string_view table);

    const SqliteFile& file_;
    std::string table_;
    std::uint64_t most_ = 0;
    std::uint64_t count_ = 0;
    sqlite3_stmt* statement_ = nullptr;
};

}  // namespace saturate
