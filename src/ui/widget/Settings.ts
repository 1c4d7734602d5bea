/** The settings of a page's chat, from the attributes of its script tag and from the agent's widget. */
import type { ShownWidget } from "../../domain/agents/Widget.ts"

/** The settings that were made in the dashboard. */
export type WidgetSettings = typeof ShownWidget.Encoded

export interface Settings {
  /** The service's address: the origin of the script itself. */
  readonly base: string
  /** An API key, or the public name of the agent's widget. */
  readonly key: string
  readonly language: string
  readonly externalEndUserId: string | null
  /** A token of the page's server. It says who the visitor is and what they may read. */
  readonly visitorToken: string | null
  readonly position: "start" | "end"
  /** A CSS colour; null for the default. */
  readonly accent: string | null
  readonly open: boolean
  /** Null if the page uses an API key. Then only the tag's attributes apply. */
  readonly widget: WidgetSettings | null
}

/** The attributes of the script tag. */
export interface ScriptTag {
  readonly base: string
  readonly key: string
  /** True if the widget's settings are to be loaded from the service. */
  readonly hasPublicName: boolean
  /** True if the widget shows the dashboard's settings and sends nothing. */
  readonly isPreview: boolean
  readonly attributes: DOMStringMap
}

/** Null if the tag has neither a key nor a valid public name. */
export const readScriptTag = (script: Element | null): ScriptTag | null => {
  if (!(script instanceof HTMLScriptElement)) return null
  const attributes = { ...script.dataset }
  const { agent = "", key = "", preview } = attributes
  const isPreview = preview !== undefined
  if (agent === "" && key === "" && !isPreview) return null
  return {
    base: new URL(script.src, document.baseURI).origin,
    key: agent === "" ? key : agent,
    hasPublicName: agent !== "",
    isPreview,
    attributes
  }
}

const positionOf = (text: string | undefined) => (text === "left" || text === "start" ? "start" : "end")

/** Attributes of the tag override the widget's settings. */
export const settingsOf = ({ attributes, base, key }: ScriptTag, widget: WidgetSettings | null): Settings => {
  const { externalEndUserId, open, visitorToken } = attributes
  const accent = attributes["accent"] ?? widget?.color ?? undefined
  const fixedLanguage = widget === null || widget.language === "auto" ? undefined : widget.language
  return {
    base,
    key,
    language:
      attributes["language"] ?? fixedLanguage ?? (document.documentElement.lang || navigator.language),
    externalEndUserId: externalEndUserId ?? null,
    visitorToken: visitorToken ?? null,
    position: positionOf(attributes["position"] ?? widget?.position),
    accent: accent !== undefined && CSS.supports("color", accent) ? accent : null,
    open: open !== undefined && open !== "false",
    widget
  }
}
