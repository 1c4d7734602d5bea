/** What the page says about its chat: the attributes of the script tag. */
export interface Settings {
  /** Where the service is: the origin that the script itself came from. */
  readonly base: string
  readonly key: string
  readonly language: string
  readonly externalEndUserId: string | null
  readonly position: "start" | "end"
  /** A colour of the page's own, or null. */
  readonly accent: string | null
  readonly open: boolean
}

const oneOf = (text: string | undefined) => (text === "left" || text === "start" ? "start" : "end")

/** Null where the tag has no key, or is none. */
export const settingsOf = (script: Element | null): Settings | null => {
  if (!(script instanceof HTMLScriptElement)) return null
  const { accent, externalEndUserId, key, language, open, position } = script.dataset
  if (key === undefined || key === "") return null
  return {
    base: new URL(script.src, document.baseURI).origin,
    key,
    language: language ?? (document.documentElement.lang || navigator.language),
    externalEndUserId: externalEndUserId ?? null,
    position: oneOf(position),
    accent: accent !== undefined && CSS.supports("color", accent) ? accent : null,
    open: open !== undefined && open !== "false"
  }
}
