# spoor_generate_events(TARGET MANIFEST [OUTPUTS libspoor lttng ...]): compiles the events of a manifest into the target.
#
# `spoor gen` makes the files in the target's binary folder, again when the manifest changes. Their sources become sources of the target, and their
# folder an include folder. Without OUTPUTS they are events of libspoor. The target still links spoor::spoor or spoor::static itself; for the output
# lttng it gets liblttng-ust. The program `spoor` is looked for in PATH and beside this package, or is SPOOR_PROGRAM.
function(spoor_generate_events target manifest)
	cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "OUTPUTS")
	if(arg_UNPARSED_ARGUMENTS)
		message(FATAL_ERROR "spoor_generate_events: unknown argument ${arg_UNPARSED_ARGUMENTS}")
	endif()
	if(NOT arg_OUTPUTS)
		set(arg_OUTPUTS libspoor)
	endif()
	find_program(SPOOR_PROGRAM spoor HINTS ${SPOOR_PACKAGE_BIN})
	if(NOT SPOOR_PROGRAM)
		message(FATAL_ERROR "spoor_generate_events needs the program spoor: install it, or set SPOOR_PROGRAM")
	endif()
	get_filename_component(manifest ${manifest} ABSOLUTE)
	get_filename_component(name ${manifest} NAME_WE)
	set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_events)
	set(only)
	foreach(output IN LISTS arg_OUTPUTS)
		list(APPEND only --only ${output})
	endforeach()
	# The names of the files depend on the manifest.
	execute_process(COMMAND ${SPOOR_PROGRAM} gen ${manifest} --list ${only} OUTPUT_VARIABLE files ERROR_VARIABLE words RESULT_VARIABLE code
		OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
	if(code)
		message(FATAL_ERROR "spoor_generate_events: ${words}")
	endif()
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
	string(REPLACE "\n" ";" files "${files}")
	list(TRANSFORM files PREPEND ${folder}/)
	set(sources ${files})
	list(FILTER sources INCLUDE REGEX "\\.c$")
	# A file that is the same again keeps its time, so the stamp says when they were made.
	add_custom_command(OUTPUT ${folder}/${name}.stamp BYPRODUCTS ${files}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
		COMMAND ${SPOOR_PROGRAM} gen -q ${manifest} -o ${folder} ${only}
		COMMAND ${CMAKE_COMMAND} -E touch ${folder}/${name}.stamp
		DEPENDS ${manifest} COMMENT "Generating the events of ${name}" VERBATIM)
	add_custom_target(${target}_${name}_events DEPENDS ${folder}/${name}.stamp)
	add_dependencies(${target} ${target}_${name}_events)
	set_source_files_properties(${files} PROPERTIES GENERATED TRUE)
	target_sources(${target} PRIVATE ${sources})
	target_include_directories(${target} PRIVATE ${folder})
	if("lttng" IN_LIST arg_OUTPUTS)
		target_link_libraries(${target} PRIVATE lttng-ust)
	endif()
endfunction()
