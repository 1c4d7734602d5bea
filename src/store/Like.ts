/** Patterns of `like` and `ilike`. */

/** Matches what contains `text`, each of its characters as it is. */
export const containing = (text: string): string => `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
