// SPDX-License-Identifier: Apache-2.0
#include "pipeline/make_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <iterator>
#include <numbers>
#include <span>

#include "pipeline/canvas.h"

namespace saturate {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

void append_row(std::string& out, std::int64_t hour, std::span<const double> values) {
    using namespace std::chrono;
    sys_days first = 2019y / January / 1;
    sys_days day = first + days{hour / 24};
    year_month_day date(day);
    fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02} {:02}:00:00", int(date.year()),
                   unsigned(date.month()), unsigned(date.day()), hour % 24);
    for (double value : values) fmt::format_to(std::back_inserter(out), ",{:.4g}", value);
    out += '\n';
}

// A random value per hour that is correlated with the hours before.
class Drift {
  public:
    explicit Drift(double memory) : memory_(memory), fresh_(std::sqrt(1 - memory * memory)) {}
    double next(Dice& dice) { return value_ = memory_ * value_ + fresh_ * dice.normal(); }

  private:
    double memory_, fresh_, value_ = 0;
};

struct Weather {
    double temperature, pressure, dew_point, wind_x, wind_y, rain;
    [[nodiscard]] double wind() const { return std::hypot(wind_x, wind_y); }
};

class WeatherMaker {
  public:
    Weather next(std::int64_t hour, Dice& dice) {
        double day = std::sin(kTurn * static_cast<double>(hour % 24 - 9) / 24);
        double year = std::sin(kTurn * (static_cast<double>(hour) / 8766 - 0.3));
        double front = front_.next(dice);
        Weather out{};
        out.temperature = 12 + 11 * year + 5 * day + 3 * warmth_.next(dice);
        out.pressure = 1014 - 6 * front - 0.3 * out.temperature;
        out.dew_point = out.temperature - 9 + 4 * front - 2 * day;
        out.wind_x = 2.2 * east_.next(dice) + front;
        out.wind_y = 2.2 * north_.next(dice);
        out.rain = front > 1.1 ? 2.5 * (front - 1.1) * dice.between(0.5, 1.5) : 0;
        return out;
    }

  private:
    Drift front_{0.985}, warmth_{0.98}, east_{0.96}, north_{0.96};
};

double rush(std::int64_t hour) {  // daily traffic with two peaks; less at the weekend
    auto h = static_cast<double>(hour % 24);
    double peaks = std::exp(-std::pow((h - 8) / 2, 2)) + std::exp(-std::pow((h - 18) / 2.5, 2));
    return (0.25 + peaks) * (hour / 24 % 7 >= 5 ? 0.6 : 1.0);
}

}  // namespace

std::string load_csv(std::int64_t rows, std::uint64_t seed) {
    Dice dice(seed);
    WeatherMaker weather;
    Drift demand(0.9);
    std::deque<double> pump(7, 0.0);
    std::string out =
        "time,hour_sin,hour_cos,week_sin,week_cos,temperature,pressure,dew_point,wind_x,wind_y,"
        "rain,price,demand,pump,valve,voltage,load\n";
    double is_on = 0;
    for (std::int64_t hour = 0; hour < rows; ++hour) {
        double day = kTurn * static_cast<double>(hour % 24) / 24;
        double week = kTurn * static_cast<double>(hour % 168) / 168;
        Weather sky = weather.next(hour, dice);
        if (dice.unit() < 0.1) is_on = 1 - is_on;
        pump.push_back(is_on);
        pump.pop_front();
        double wish = demand.next(dice);
        double load = 50 + 12 * std::sin(day - 2) + 5 * std::sin(week) + 8 * pump.front() +
                      0.6 * std::abs(sky.temperature - 16) + 2 * wish + 0.5 * dice.normal();
        double values[] = {std::sin(day),
                           std::cos(day),
                           std::sin(week),
                           std::cos(week),
                           sky.temperature,
                           sky.pressure,
                           sky.dew_point,
                           sky.wind_x,
                           sky.wind_y,
                           sky.rain,
                           30 + 8 * std::sin(day - 1.5) + 2 * dice.normal(),
                           wish,
                           is_on,
                           pump[3],
                           230 - 0.05 * load + 0.4 * dice.normal(),
                           load};
        append_row(out, hour, values);
    }
    return out;
}

std::string air_quality_csv(std::int64_t rows, std::uint64_t seed) {
    Dice dice(seed);
    WeatherMaker weather;
    std::string out =
        "time,hour_sin,hour_cos,PM10,SO2,NO2,CO,O3,TEMP,PRES,DEWP,RAIN,WIND_X,WIND_Y,traffic,"
        "heating,PM2.5\n";
    double dust = 60;
    for (std::int64_t hour = 0; hour < rows; ++hour) {
        double day = kTurn * static_cast<double>(hour % 24) / 24;
        Weather sky = weather.next(hour, dice);
        double traffic = rush(hour) * dice.between(0.9, 1.1);
        double heating = std::max(0.0, 16 - sky.temperature) / 10;
        // Wind blows dust away, rain washes it out, cars and stoves add to it: this hour's weather
        // decides the next hour's dust.
        double values[] = {std::sin(day),
                           std::cos(day),
                           1.4 * dust + 12 + 6 * dice.normal(),
                           6 + 9 * heating + dice.normal(),
                           20 + 25 * traffic + 3 * dice.normal(),
                           0.4 + 0.5 * traffic + 0.006 * dust + 0.05 * dice.normal(),
                           std::max(1.0, 40 + 1.2 * sky.temperature - 20 * traffic),
                           sky.temperature,
                           sky.pressure,
                           sky.dew_point,
                           sky.rain,
                           sky.wind_x,
                           sky.wind_y,
                           traffic,
                           heating,
                           dust};
        append_row(out, hour, values);
        double leaves = std::min(0.7, 0.02 + 0.035 * sky.wind() + 0.12 * sky.rain);
        dust = dust * (1 - leaves) + 6 * traffic + 4 * heating;
        dust = std::max(2.0, dust * (1 + 0.02 * dice.normal()));
    }
    return out;
}

}  // namespace saturate
