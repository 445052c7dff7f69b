# Warnings for all parts; sanitizers for what runs outside the target.
add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -fno-common
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
# The attribute noclone, which clang does not need.
add_compile_options("$<$<COMPILE_LANG_AND_ID:C,Clang>:-Wno-unknown-attributes>"
  "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-attributes>")
if(MEMATTACH_WERROR)
  add_compile_options(-Werror)
endif()
add_compile_definitions(_GNU_SOURCE)

# What ends a program that writes beyond a buffer, as in Debian's packages, and more. Not for the payload.
set(hardening -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero)
# Only with optimization the C library checks sizes, and it warns without.
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
if("${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}" MATCHES "-O[1-9gs]")
  list(APPEND hardening -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()

function(memattach_harden target)
  target_compile_options(${target} PUBLIC "$<$<COMPILE_LANGUAGE:C>:${hardening}>"
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>:-fPIE>)
  target_link_options(${target} PUBLIC $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> -Wl,-z,relro -Wl,-z,now)
endfunction()

# Applies MEMATTACH_SANITIZE and MEMATTACH_COVERAGE to a target and to what links it, or else hardens both.
function(memattach_sanitize target)
  if(MEMATTACH_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${MEMATTACH_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${MEMATTACH_SANITIZE})
    # GCC says of each fence that the sanitizer does not know what it orders.
    if(MEMATTACH_SANITIZE MATCHES thread AND CMAKE_C_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PUBLIC -Wno-tsan)
    endif()
  endif()
  if(MEMATTACH_COVERAGE)
    target_compile_options(${target} PUBLIC --coverage -fprofile-update=atomic)
    target_link_options(${target} PUBLIC --coverage)
  endif()
  if(NOT MEMATTACH_SANITIZE AND NOT MEMATTACH_COVERAGE)
    memattach_harden(${target})
  endif()
endfunction()
