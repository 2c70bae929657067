// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace saturate {
namespace {

TEST(ArgumentsTest, AnOptionThatTheVerbDoesNotHaveIsOurMistake) {
    Arguments arguments = Arguments::parse(*find_verb("doctor"), {"--json"});
    EXPECT_TRUE(arguments.has("--json"));
    EXPECT_FALSE(arguments.has("--data"));
    EXPECT_THROW((void)arguments.has("--jsno"), Bug);
    EXPECT_THROW((void)arguments.text("--config"), Bug);
    EXPECT_THROW((void)arguments.all("--set"), Bug);
    EXPECT_THROW((void)arguments.number("--interval", 0, 1), Bug);
}

TEST(ArgumentsTest, DefaultsComeFromTheTableThatHelpIsMadeFrom) {
    Arguments none = Arguments::parse(*find_verb("monitor"), {});
    EXPECT_EQ(none.number("--interval", 0, 100), 1);
    EXPECT_FALSE(none.has("--interval"));
    Arguments given = Arguments::parse(*find_verb("monitor"), {"--interval", "2"});
    EXPECT_EQ(given.number("--interval", 0, 100), 2);
    EXPECT_EQ(option_help(*find_option(*find_verb("monitor"), "--interval")),
              "time between two readings, 0.1 to 3600 (default: 1)");
    EXPECT_EQ(given.text("--gpu"), std::nullopt);
}

TEST(ArgumentsTest, ATimeHasAUnit) {
    auto budget = [](const char* text) {
        return Arguments::parse(*find_verb("tune"), {"--budget", text})
            .seconds("--budget", 1, 3600);
    };
    EXPECT_EQ(budget("90"), 90);
    EXPECT_EQ(budget("90s"), 90);
    EXPECT_EQ(budget("2.5m"), 150);
    EXPECT_EQ(budget("1h"), 3600);
    EXPECT_EQ(Arguments::parse(*find_verb("fix"), {}).seconds("--budget", 1, 3600), 600);
    for (const char* wrong : {"2h", "0s", "m", "", "ten", "5d", "nan", "-3m"}) {
        EXPECT_THROW((void)budget(wrong), UserError) << wrong;
    }
}

// A default that is one of the choices, and none where an option must be given.
TEST(ArgumentsTest, EveryDefaultIsAValueThatCouldBeGiven) {
    int defaults = 0;
    for (const Verb& verb : verbs()) {
        for (const Option& option : verb.options) {
            if (option.fallback.empty()) continue;
            ++defaults;
            EXPECT_FALSE(option.required) << verb.name << " " << option.name;
            EXPECT_FALSE(option.value.empty()) << verb.name << " " << option.name;
            std::vector<std::string> words{std::string(option.name), std::string(option.fallback)};
            for (const Option& other : verb.options)
                if (other.required) words.insert(words.end(), {std::string(other.name), "x"});
            EXPECT_NO_THROW((void)Arguments::parse(verb, words)) << verb.name << " " << option.name;
        }
    }
    EXPECT_GT(defaults, 15);
}

std::string complaint(const char* verb, const std::vector<std::string>& words) {
    try {
        (void)Arguments::parse(*find_verb(verb), words);
    } catch (const UserError& error) {
        return error.what();
    }
    return "none";
}

TEST(ArgumentsTest, ACommandWithoutItsDashesGetsThem) {
    using testing::HasSubstr;
    EXPECT_THAT(complaint("run", {"python", "train.py", "--lr", "1"}),
                HasSubstr("put -- before the command: saturate run -- python train.py --lr 1"));
    EXPECT_THAT(complaint("fix", {"--dry-run", "python", "train.py"}),
                HasSubstr("saturate fix --dry-run -- python train.py"));
    // Where the dashes are there, the word before them is something else.
    EXPECT_THAT(complaint("run", {"fast", "--", "python", "train.py"}),
                testing::Not(HasSubstr("put --")));
}

TEST(ArgumentsTest, AFileWithoutItsOptionIsToldOnce) {
    std::string text = complaint("optimize", {"c.yaml"});
    EXPECT_THAT(text, testing::HasSubstr("saturate optimize --config c.yaml"));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("is missing")));
    EXPECT_THAT(complaint("train", {"c.toml", "--typo"}), testing::HasSubstr("--typo"));
}

TEST(ArgumentsTest, EveryVerbHasTwoExamplesThatParse) {
    for (const Verb& verb : verbs()) {
        auto examples = verb_examples(verb.name);
        EXPECT_GE(examples.size(), 2u) << verb.name;
        for (const auto& [command, what] : examples) {
            std::vector<std::string> words;
            for (std::string_view word : split(command, ' ')) words.emplace_back(word);
            ASSERT_EQ(words[0], verb.name) << command;
            words.erase(words.begin());
            EXPECT_NO_THROW((void)Arguments::parse(verb, words)) << command;
            EXPECT_FALSE(what.empty()) << command;
        }
    }
}

}  // namespace
}  // namespace saturate
