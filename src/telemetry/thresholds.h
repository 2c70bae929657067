// SPDX-License-Identifier: Apache-2.0
// The limits between good and bad, shared by the verdict, the colours of the live view and the
// exporter's alerts. Each can be set on the command line of monitor.
#pragma once

namespace saturate {

struct Thresholds {
    double good_percent = 85;         // utilisation from this value on is good
    double low_percent = 70;          // utilisation under this is low
    double fluctuation_points = 10;   // a standard deviation above this counts as fluctuating
    double temperature_celsius = 85;  // a GPU above this is hot
    double cpu_percent = 90;          // host CPU use above this is the likely bottleneck
};

}  // namespace saturate
