# cmake -DNAME=... -DSPIRV=... -DOUTPUT=... -P embed.cmake: the words of a SPIR-V file as C, and MODULE_NAME for the table.
file(READ ${SPIRV} hex HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
string(REGEX REPLACE "(0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,)" "\\1\n" words "${words}")
file(WRITE ${OUTPUT}
     "static const uint32_t ${NAME}_words[] = {\n${words}};\n#define MODULE_${NAME} ${NAME}_words, sizeof ${NAME}_words\n")
