/* SPDX-License-Identifier: Apache-2.0
 *
 * .npz, and whatever else a file may be: the bytes as they come. */
#include "fuzz.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 1 << 16)
        fuzz_file(data, size);
    return 0;
}
