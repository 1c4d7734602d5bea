/** A pattern that matches values that contain `text`. Wildcards in `text` are escaped. */
export const containing = (text: string): string => `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
