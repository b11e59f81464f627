/* SPDX-License-Identifier: Apache-2.0
 *
 * .safetensors: the input is header and data; the length is put in front (two
 * of its bytes from the input), and '{' behind it, so that no time goes into
 * finding them. */
#include "fuzz.h"
#include "fuzz_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[1 << 16];

    if (size < 9 || size > sizeof file)
        return 0;
    memcpy(file, data, size);
    memset(file + 2, 0, 6);
    file[8] = '{';
    fuzz_file(file, size);
    return 0;
}
