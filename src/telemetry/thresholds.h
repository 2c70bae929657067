// SPDX-License-Identifier: Apache-2.0
// Where good ends and bad begins: the verdict, the colours of the live view and the exporter's
// alerts share these numbers. Each can be set on the command line of monitor.
#pragma once

namespace saturate {

struct Thresholds {
    double good_percent = 85;         // utilisation from here on is good
    double low_percent = 70;          // under this it is low
    double fluctuation_points = 10;   // standard deviation above this fluctuates
    double temperature_celsius = 85;  // above this it is hot
    double cpu_percent = 90;          // the host's CPU above this is the likely brake
};

}  // namespace saturate
