/** Units of bytes. */
export const MiB = 1_048_576
export const GiB = 1_024 * MiB
