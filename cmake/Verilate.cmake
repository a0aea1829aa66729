# SPDX-License-Identifier: Apache-2.0
# How RTL becomes C++ and a library.
#
#   urdma_verilate(NAME lib TOP module RTL file... [TRAINER program] [ARGS verilator-argument...]
#                  [FINISH header script argument...])
#       static library LIB with class V<TOP>; its header stands on the include path. Target LIB_cpp is the
#       C++ alone, LIB_gen the archive. With TRAINER the archive is compiled by a profile: there is a
#       library LIB_train, too, instrumented, which the target TRAINER links; its loads give the profile. FINISH is a
#       command that works on the C++ before it is compiled, and a header that it writes.
#   urdma_add_rtl_test(NAME test TOP module RTL file... SOURCES file... [ARGS ...])
#       the block TOP alone, Verilated and linked with SOURCES and cmocka, as a ctest case; and once more, with
#       the label full, for many seeds.
#
# The generated package urdma_hw_pkg (from driver/urdma_hw.h), urdma_pkg and urdma_trace_pkg are always read first.

execute_process(COMMAND ${VERILATOR} --getenv VERILATOR_ROOT OUTPUT_VARIABLE VERILATOR_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(URDMA_HW_PKG ${CMAKE_BINARY_DIR}/gen/urdma_hw_pkg.sv)
set(URDMA_PKGS ${CMAKE_SOURCE_DIR}/rtl/urdma.vlt ${URDMA_HW_PKG} ${CMAKE_SOURCE_DIR}/rtl/urdma_pkg.sv
               ${CMAKE_SOURCE_DIR}/rtl/urdma_trace_pkg.sv)
add_custom_command(
  OUTPUT ${URDMA_HW_PKG}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/gen
  COMMAND ${CMAKE_SOURCE_DIR}/tools/gen-hw-pkg.sh ${CMAKE_SOURCE_DIR}/driver/urdma_hw.h ${URDMA_HW_PKG}
  DEPENDS ${CMAKE_SOURCE_DIR}/tools/gen-hw-pkg.sh ${CMAKE_SOURCE_DIR}/driver/urdma_hw.h
  COMMENT "Generating urdma_hw_pkg.sv")
add_custom_target(urdma_hw_pkg DEPENDS ${URDMA_HW_PKG})

# Positions of the members of the packages' packed structs, for block tests: gen/rtl_types/<package>.h.
set(URDMA_TYPES ${CMAKE_BINARY_DIR}/gen/rtl_types)
set(URDMA_TYPE_PKGS)
foreach(pkg urdma_pkg urdma_opcode_pkg urdma_trace_pkg rx/urdma_rx_pkg rx/urdma_rx_cmpl_pkg tx/urdma_tx_pkg mr/urdma_mr_pkg queue/urdma_ctl_pkg
        eth/urdma_eth_rx_pkg eth/urdma_eth_tx_pkg)
  list(APPEND URDMA_TYPE_PKGS ${CMAKE_SOURCE_DIR}/rtl/${pkg}.sv)
endforeach()
add_custom_command(
  OUTPUT ${URDMA_TYPES}/stamp
  COMMAND ${CMAKE_SOURCE_DIR}/tools/gen-rtl-types.sh ${VERILATOR} ${URDMA_TYPES} ${CMAKE_SOURCE_DIR}/rtl/urdma.vlt
          ${URDMA_HW_PKG} ${URDMA_TYPE_PKGS}
  COMMAND ${CMAKE_COMMAND} -E touch ${URDMA_TYPES}/stamp
  DEPENDS ${CMAKE_SOURCE_DIR}/tools/gen-rtl-types.sh ${URDMA_HW_PKG} ${URDMA_TYPE_PKGS} ${VERILATOR}
  COMMENT "Generating the layouts of the RTL's packages")
add_custom_target(urdma_rtl_types DEPENDS ${URDMA_TYPES}/stamp)

# RTL with planted faults: a copy from which the models are made, and a package before all others. The faults are planted in a
# second copy. Only changed files are copied from there, so only their models are made again.
if(URDMA_MUTATE)
  set(URDMA_MUTATE_DIR ${CMAKE_SOURCE_DIR}/tests/mutate)
  set(URDMA_MUTATED ${CMAKE_BINARY_DIR}/rtl)
  set(planted ${CMAKE_BINARY_DIR}/rtl.new)
  file(REMOVE_RECURSE ${planted})
  file(COPY ${CMAKE_SOURCE_DIR}/rtl/ DESTINATION ${planted})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/rtl/*.sv)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} ${URDMA_MUTATE_DIR}/faults
                                                                 ${URDMA_MUTATE_DIR}/plant.awk)
  execute_process(COMMAND awk -f ${URDMA_MUTATE_DIR}/plant.awk -v rtl=${CMAKE_SOURCE_DIR}/rtl -v out=${planted}
                          ${URDMA_MUTATE_DIR}/faults COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE names RELATIVE ${planted} ${planted}/*)
  foreach(name ${names})
    cmake_path(GET name PARENT_PATH folder)
    file(MAKE_DIRECTORY ${URDMA_MUTATED}/${folder})
    file(COPY_FILE ${planted}/${name} ${URDMA_MUTATED}/${name} ONLY_IF_DIFFERENT)
  endforeach()
  list(PREPEND URDMA_PKGS -Wno-lint ${URDMA_MUTATE_DIR}/urdma_mutate_pkg.sv)
endif()

add_library(verilated_runtime STATIC ${VERILATOR_ROOT}/include/verilated.cpp
            ${VERILATOR_ROOT}/include/verilated_threads.cpp)
target_include_directories(verilated_runtime SYSTEM PUBLIC
                           ${VERILATOR_ROOT}/include ${VERILATOR_ROOT}/include/vltstd)
target_compile_options(verilated_runtime PRIVATE -O2)
if(URDMA_MUTATE)
  target_sources(verilated_runtime PRIVATE ${URDMA_MUTATE_DIR}/fault.cc)
endif()
find_package(Threads REQUIRED)
target_link_libraries(verilated_runtime PUBLIC Threads::Threads)

set(URDMA_MODEL_CFLAGS -O2 -fno-strict-aliasing)
# Waves, for all models of the build.
if(URDMA_TRACE)
  add_library(verilated_fst STATIC ${VERILATOR_ROOT}/include/verilated_fst_c.cpp)
  target_compile_definitions(verilated_fst PUBLIC VM_TRACE=1 VM_TRACE_FST=1)
  target_compile_options(verilated_fst PRIVATE -O2 -w -include ${CMAKE_SOURCE_DIR}/sim/fst_checks.h)
  target_link_libraries(verilated_fst PUBLIC verilated_runtime PkgConfig::ZLIB PkgConfig::LZ4)
  list(APPEND URDMA_MODEL_CFLAGS -UVM_TRACE -DVM_TRACE=1 -DVM_TRACE_FST=1)
endif()
if(URDMA_NATIVE)
  list(APPEND URDMA_MODEL_CFLAGS -march=native)
endif()

if(URDMA_COVERAGE)
  set(URDMA_COVERAGE_DIR ${CMAKE_BINARY_DIR}/counts)
  file(MAKE_DIRECTORY ${URDMA_COVERAGE_DIR})
  set(URDMA_COVERAGE_TOOLS ${CMAKE_SOURCE_DIR}/tools/coverage)
  list(APPEND URDMA_MODEL_CFLAGS "-DURDMA_COVERAGE_DIR=\"${URDMA_COVERAGE_DIR}\"" -include ${URDMA_COVERAGE_TOOLS}/model.h)
endif()

# Whether a profile can be made: clang, its runtime for instrumented programs, and llvm-profdata.
set(URDMA_TRAIN OFF)
if(URDMA_PGO AND NOT URDMA_TRACE AND NOT URDMA_COVERAGE)
  include(CheckCXXSourceCompiles)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    string(REGEX MATCH "^[0-9]+" major ${CMAKE_CXX_COMPILER_VERSION})
    find_program(LLVM_PROFDATA NAMES llvm-profdata-${major})
    set(CMAKE_REQUIRED_FLAGS -fprofile-generate)
    check_cxx_source_compiles("int main() { return 0; }" URDMA_CAN_INSTRUMENT)
    unset(CMAKE_REQUIRED_FLAGS)
  endif()
  if(LLVM_PROFDATA AND URDMA_CAN_INSTRUMENT)
    set(URDMA_TRAIN ON)
  else()
    message(STATUS "The model is compiled without a profile: that takes clang, with llvm-profdata and libclang-rt of "
                   "its version (the compiler is ${CMAKE_CXX_COMPILER})")
  endif()
endif()

function(urdma_verilate)
  cmake_parse_arguments(V "" "NAME;TOP;TRAINER" "RTL;ARGS;FINISH" ${ARGN})
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/V_${V_NAME})
  set(prefix V${V_TOP})
  set(args --cc --top-module ${V_TOP} --Mdir ${dir} -Wall -O3 --assert --x-assign fast
      --x-initial fast -I${CMAKE_SOURCE_DIR}/rtl --output-split 20000 ${V_ARGS})
  set(rtl)
  foreach(f ${V_RTL})
    get_filename_component(abs ${f} ABSOLUTE)
    if(URDMA_MUTATE)
      string(REPLACE ${CMAKE_SOURCE_DIR}/rtl/ ${URDMA_MUTATED}/ abs ${abs})
    endif()
    list(APPEND rtl ${abs})
  endforeach()
  # CMake has to know outputs before Verilator has run, so a stamp stands for the generated C++, and a script compiles it into
  # an archive.
  set(stamp ${dir}/verilated)
  # Without BYPRODUCTS ninja would not notice in the same run that these have changed.
  set(headers ${dir}/${prefix}.h ${dir}/${prefix}___024root.h)
  set(finish)
  if(URDMA_COVERAGE)
    list(APPEND args --coverage-line --coverage-toggle --coverage-user)
    list(APPEND finish COMMAND ${URDMA_COVERAGE_TOOLS}/hook.sh ${dir} ${prefix} ${V_NAME})
  endif()
  if(URDMA_TRACE)
    # Members of packed structs are signals of their own.
    list(APPEND args --trace-fst --trace-structs)
  endif()
  if(V_FINISH)
    list(POP_FRONT V_FINISH header)
    list(GET V_FINISH 0 finish_script)
    list(APPEND headers ${header})
    list(REMOVE_DUPLICATES headers)
    list(APPEND finish COMMAND ${V_FINISH})
  endif()
  set(depends ${URDMA_PKGS})
  list(FILTER depends EXCLUDE REGEX "^-")
  if(URDMA_TRACE)
    list(APPEND depends ${CMAKE_SOURCE_DIR}/tools/waves/block.h ${CMAKE_SOURCE_DIR}/sim/waves.h)
  endif()
  add_custom_command(
    OUTPUT ${stamp}
    BYPRODUCTS ${headers}
    # otherwise files that an earlier version of the RTL left would be compiled, too
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${dir}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${dir}
    COMMAND ${VERILATOR} ${args} ${URDMA_PKGS} ${rtl}
    ${finish}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${depends} ${rtl} ${VERILATOR} ${finish_script}
    COMMENT "Verilating ${V_TOP} (${V_NAME})"
    VERBATIM)
  add_custom_target(${V_NAME}_cpp DEPENDS ${stamp})

  set(script ${CMAKE_SOURCE_DIR}/tools/build-model.sh)
  set(env ${CMAKE_COMMAND} -E env "VROOT=${VERILATOR_ROOT}" "CXX=${CMAKE_CXX_COMPILER}"
      "CXX_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}" "AR=${CMAKE_AR}")
  set(archive ${dir}/${prefix}.a)
  if(V_TRAINER AND URDMA_TRAIN)
    set(slow ${dir}/slow.a)
    set(train ${dir}/train.a)
    set(profile ${dir}/profile)
    add_custom_command(
      OUTPUT ${slow}
      COMMAND ${env} ${script} ${dir} ${prefix} slow ${slow} ${URDMA_MODEL_CFLAGS}
      DEPENDS ${stamp} ${script}
      COMMENT "Compiling ${V_TOP} (${V_NAME}): what runs once"
      VERBATIM)
    add_custom_command(
      OUTPUT ${train}
      # -O1: clang instruments before it optimizes, so the profile fits -O2, and this build takes less time.
      COMMAND ${env} SLOW_OBJECTS=${slow}.objs ${script} ${dir} ${prefix} fast ${train} ${URDMA_MODEL_CFLAGS} -O1
              -fprofile-generate
      DEPENDS ${stamp} ${slow} ${script}
      COMMENT "Compiling ${V_TOP} (${V_NAME}) with instruments"
      VERBATIM)
    add_custom_target(${V_NAME}_train_gen DEPENDS ${train})
    add_library(${V_NAME}_train INTERFACE)
    add_dependencies(${V_NAME}_train ${V_NAME}_train_gen)
    target_include_directories(${V_NAME}_train SYSTEM INTERFACE ${dir})
    target_link_options(${V_NAME}_train INTERFACE -fprofile-generate)
    target_link_libraries(${V_NAME}_train INTERFACE ${train} verilated_runtime)
    add_custom_command(
      OUTPUT ${profile}
      COMMAND ${CMAKE_SOURCE_DIR}/tools/train-model.sh $<TARGET_FILE:${V_TRAINER}> ${LLVM_PROFDATA} ${profile}
      # Not the program itself: a change outside the model needs no new profile.
      DEPENDS ${train} ${CMAKE_SOURCE_DIR}/tools/train-model.sh
      COMMENT "Profiling ${V_TOP}"
      VERBATIM)
    add_custom_command(
      OUTPUT ${archive}
      COMMAND ${env} PROFILE=${profile} SLOW_OBJECTS=${slow}.objs ${script} ${dir} ${prefix} fast ${archive}
              ${URDMA_MODEL_CFLAGS}
      DEPENDS ${stamp} ${slow} ${profile} ${script}
      COMMENT "Compiling ${V_TOP} (${V_NAME}) by its profile"
      VERBATIM)
  else()
    add_custom_command(
      OUTPUT ${archive}
      COMMAND ${env} ${script} ${dir} ${prefix} all ${archive} ${URDMA_MODEL_CFLAGS}
      DEPENDS ${stamp} ${script}
      COMMENT "Compiling ${V_TOP} (${V_NAME})"
      VERBATIM)
  endif()
  add_custom_target(${V_NAME}_gen DEPENDS ${archive})
  if(V_TRAINER AND URDMA_TRAIN)
    add_dependencies(${V_NAME}_gen ${V_TRAINER})
  endif()
  add_library(${V_NAME} INTERFACE)
  add_dependencies(${V_NAME} ${V_NAME}_gen)
  target_include_directories(${V_NAME} SYSTEM INTERFACE ${dir})
  target_link_libraries(${V_NAME} INTERFACE ${archive} verilated_runtime)
  if(URDMA_TRACE)
    target_link_libraries(${V_NAME} INTERFACE verilated_fst)
  endif()
endfunction()

function(urdma_add_rtl_test)
  cmake_parse_arguments(T "" "NAME;TOP" "RTL;SOURCES;ARGS" ${ARGN})
  set(finish)
  if(URDMA_TRACE)
    set(dir ${CMAKE_CURRENT_BINARY_DIR}/V_${T_NAME}_model)
    set(finish FINISH ${dir}/V${T_TOP}.h ${CMAKE_SOURCE_DIR}/tools/waves/hook.sh ${dir} V${T_TOP})
  endif()
  urdma_verilate(NAME ${T_NAME}_model TOP ${T_TOP} RTL ${T_RTL} ARGS ${T_ARGS} ${finish})
  add_executable(${T_NAME} ${T_SOURCES} ${CMAKE_SOURCE_DIR}/tests/choose.c)
  add_dependencies(${T_NAME} ${T_NAME}_model_gen urdma_rtl_types)
  target_include_directories(${T_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/driver ${CMAKE_SOURCE_DIR}/tests ${URDMA_TYPES})
  target_link_libraries(${T_NAME} PRIVATE ${T_NAME}_model urdma_warnings PkgConfig::CMOCKA)
  add_test(NAME rtl.${T_NAME} COMMAND ${T_NAME})
  set_tests_properties(rtl.${T_NAME} PROPERTIES LABELS "rtl;short" TIMEOUT 3600)
  # as many seeds as fit into 20 s of CPU time; the first is the one of the short form
  add_test(NAME rtl.${T_NAME}.full COMMAND ${CMAKE_SOURCE_DIR}/tests/rtl/seeds.sh $<TARGET_FILE:${T_NAME}>)
  set_tests_properties(rtl.${T_NAME}.full PROPERTIES LABELS "rtl;full" TIMEOUT 3600)
endfunction()
