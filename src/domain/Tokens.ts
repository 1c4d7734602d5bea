/** Estimates token counts where a provider does not report them. */

/** A conservative estimate: one token for about four Latin characters, or for one character of other scripts. */
export const estimateTokens = (text: string): number => {
  let wide = 0
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x2e80) wide++
  return Math.ceil((text.length - wide) / 4) + wide
}
