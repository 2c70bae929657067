// SPDX-License-Identifier: Apache-2.0
// The compiled part of {fmt}. Debian has it as a shared library only; built into our programs, it
// need not be loaded at start. {fmt} 9 (Debian 12, Ubuntu 24.04) and 10 (Debian 13).
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
#if FMT_VERSION >= 100000
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, vformat_args<>::type, locale_ref);
#endif

}  // namespace detail
FMT_END_NAMESPACE
