/** Settings of a page's chat: the attributes of its script tag, and those of the agent's widget. */
import type { ShownWidget } from "../../domain/agents/Widget.ts"

/** The widget's settings from the dashboard. */
export type Look = typeof ShownWidget.Encoded

export interface Settings {
  /** The service's address: the origin of the script itself. */
  readonly base: string
  /** A key, or the public name of the agent's widget. */
  readonly key: string
  readonly language: string
  readonly externalEndUserId: string | null
  /** Created by the page's server: who the visitor is, and what they may read. */
  readonly visitorToken: string | null
  readonly position: "start" | "end"
  /** A colour of the page's own, or null. */
  readonly accent: string | null
  readonly open: boolean
  /** Null if the page uses a key: then only the tag's attributes apply. */
  readonly look: Look | null
}

/** The attributes of the script tag. */
export interface Tag {
  readonly base: string
  readonly key: string
  /** The widget's settings are loaded from the service. */
  readonly isNamed: boolean
  /** Shows the settings from the dashboard, and sends nothing. */
  readonly isPreview: boolean
  readonly attributes: DOMStringMap
}

/** Null if the tag has neither a key nor a valid public name. */
export const tagOf = (script: Element | null): Tag | null => {
  if (!(script instanceof HTMLScriptElement)) return null
  const attributes = { ...script.dataset }
  const { agent = "", key = "", preview } = attributes
  const isPreview = preview !== undefined
  if (agent === "" && key === "" && !isPreview) return null
  return {
    base: new URL(script.src, document.baseURI).origin,
    key: agent === "" ? key : agent,
    isNamed: agent !== "",
    isPreview,
    attributes
  }
}

const oneOf = (text: string | undefined) => (text === "left" || text === "start" ? "start" : "end")

/** An attribute of the tag overrides the widget's setting. */
export const settingsOf = ({ attributes, base, key }: Tag, look: Look | null): Settings => {
  const { externalEndUserId, open, visitorToken } = attributes
  const accent = attributes["accent"] ?? look?.color ?? undefined
  const given = look === null || look.language === "auto" ? undefined : look.language
  return {
    base,
    key,
    language: attributes["language"] ?? given ?? (document.documentElement.lang || navigator.language),
    externalEndUserId: externalEndUserId ?? null,
    visitorToken: visitorToken ?? null,
    position: oneOf(attributes["position"] ?? look?.position),
    accent: accent !== undefined && CSS.supports("color", accent) ? accent : null,
    open: open !== undefined && open !== "false",
    look
  }
}
