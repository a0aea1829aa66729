# SPDX-License-Identifier: Apache-2.0
# How RTL becomes C++ and a library.
#
#   urdma_verilate(NAME lib TOP module RTL file... [ARGS verilator-argument...])
#       static library LIB with class V<TOP>; its header stands on the include path.
#   urdma_add_rtl_test(NAME test TOP module RTL file... SOURCES file... [ARGS ...])
#       the block TOP alone, Verilated and linked with SOURCES and cmocka, as a ctest case.
#
# The generated package urdma_hw_pkg (from driver/urdma_hw.h) and urdma_pkg are always read first.

execute_process(COMMAND ${VERILATOR} --getenv VERILATOR_ROOT OUTPUT_VARIABLE VERILATOR_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(URDMA_HW_PKG ${CMAKE_BINARY_DIR}/gen/urdma_hw_pkg.sv)
set(URDMA_PKGS ${CMAKE_SOURCE_DIR}/rtl/urdma.vlt ${URDMA_HW_PKG} ${CMAKE_SOURCE_DIR}/rtl/urdma_pkg.sv)
add_custom_command(
  OUTPUT ${URDMA_HW_PKG}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/gen
  COMMAND ${CMAKE_SOURCE_DIR}/tools/gen-hw-pkg.sh ${CMAKE_SOURCE_DIR}/driver/urdma_hw.h ${URDMA_HW_PKG}
  DEPENDS ${CMAKE_SOURCE_DIR}/tools/gen-hw-pkg.sh ${CMAKE_SOURCE_DIR}/driver/urdma_hw.h
  COMMENT "Generating urdma_hw_pkg.sv")
add_custom_target(urdma_hw_pkg DEPENDS ${URDMA_HW_PKG})

add_library(verilated_runtime STATIC ${VERILATOR_ROOT}/include/verilated.cpp
            ${VERILATOR_ROOT}/include/verilated_threads.cpp)
target_include_directories(verilated_runtime SYSTEM PUBLIC
                           ${VERILATOR_ROOT}/include ${VERILATOR_ROOT}/include/vltstd)
target_compile_options(verilated_runtime PRIVATE -O2)
find_package(Threads REQUIRED)
target_link_libraries(verilated_runtime PUBLIC Threads::Threads)

set(URDMA_MODEL_CFLAGS -O2 -fno-strict-aliasing)
if(URDMA_NATIVE)
  list(APPEND URDMA_MODEL_CFLAGS -march=native)
endif()

function(urdma_verilate)
  cmake_parse_arguments(V "" "NAME;TOP" "RTL;ARGS" ${ARGN})
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/V_${V_NAME})
  set(args --cc --top-module ${V_TOP} --Mdir ${dir} -Wall -O3 --assert --x-assign fast
      --x-initial fast -I${CMAKE_SOURCE_DIR}/rtl --output-split 20000 ${V_ARGS})
  set(rtl)
  foreach(f ${V_RTL})
    get_filename_component(abs ${f} ABSOLUTE)
    list(APPEND rtl ${abs})
  endforeach()
  # The script compiles the many files that Verilator writes into one archive, so that CMake knows the
  # output before Verilator has run.
  add_custom_command(
    OUTPUT ${dir}/V${V_TOP}.a
    # what an earlier version of the RTL left would be compiled too
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${dir}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${dir}
    COMMAND ${VERILATOR} ${args} ${URDMA_PKGS} ${rtl}
    COMMAND ${CMAKE_COMMAND} -E env "VROOT=${VERILATOR_ROOT}" "CXX=${CMAKE_CXX_COMPILER}"
            "CXX_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}" "AR=${CMAKE_AR}"
            ${CMAKE_SOURCE_DIR}/tools/build-model.sh ${dir} V${V_TOP} ${URDMA_MODEL_CFLAGS}
    DEPENDS ${URDMA_PKGS} ${rtl} ${CMAKE_SOURCE_DIR}/tools/build-model.sh
    COMMENT "Verilating ${V_TOP} (${V_NAME})"
    VERBATIM)
  add_custom_target(${V_NAME}_gen DEPENDS ${dir}/V${V_TOP}.a)
  add_library(${V_NAME} INTERFACE)
  add_dependencies(${V_NAME} ${V_NAME}_gen)
  target_include_directories(${V_NAME} SYSTEM INTERFACE ${dir})
  target_link_libraries(${V_NAME} INTERFACE ${dir}/V${V_TOP}.a verilated_runtime)
endfunction()

function(urdma_add_rtl_test)
  cmake_parse_arguments(T "" "NAME;TOP" "RTL;SOURCES;ARGS" ${ARGN})
  urdma_verilate(NAME ${T_NAME}_model TOP ${T_TOP} RTL ${T_RTL} ARGS ${T_ARGS})
  add_executable(${T_NAME} ${T_SOURCES})
  add_dependencies(${T_NAME} ${T_NAME}_model_gen)
  target_include_directories(${T_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/driver ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${T_NAME} PRIVATE ${T_NAME}_model urdma_warnings PkgConfig::CMOCKA)
  add_test(NAME rtl.${T_NAME} COMMAND ${T_NAME})
  set_tests_properties(rtl.${T_NAME} PROPERTIES LABELS rtl TIMEOUT 900)
endfunction()
