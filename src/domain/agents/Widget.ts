/** The widget of an agent: how it looks and what it says on pages. */
import * as Schema from "effect/Schema"
import { urlOf } from "../Address.ts"
import { optional } from "../Optional.ts"
import { AllowedOrigins } from "../accounts/ApiKey.ts"
import { SourceScope } from "../knowledge/SourceScope.ts"
import { Text, trimmed } from "../Text.ts"

/** Prefix of the public name of every widget. The name opens the chat of the widget, and nothing under `/v1`. */
export const widgetPrefix = "wgt_"

const segments = new Intl.Segmenter()
const maxAvatarCharacters = 2

/** One or two letters, or an emoji. */
const Avatar = trimmed(32).pipe(
  Schema.filter(
    (text) => [...segments.segment(text)].length <= maxAvatarCharacters || "Expected one or two characters"
  )
)

const Color = Text.pipe(
  Schema.compose(Schema.Trim),
  Schema.compose(Schema.Lowercase),
  Schema.pattern(/^#[0-9a-f]{6}$/u, { message: () => "Expected a colour such as #3d4fc4" })
)

const SecureUrl = Text.pipe(
  Schema.compose(Schema.Trim),
  Schema.maxLength(2_048),
  Schema.filter(
    (text) =>
      (/^https:\/\/[^\s/@]/iu.test(text) && urlOf(text) !== null) ||
      "Expected an address that begins with https://"
  )
)

/** A line of plain text below the field, with at most one link. */
const Consent = Schema.Struct({
  text: trimmed(300),
  link: Schema.NullOr(Schema.Struct({ label: trimmed(80), url: SecureUrl }))
})

const look = {
  /**
   * Color of button and messages. Text on it is black or white, whichever is easier to read. Null uses the widget's
   * default.
   */
  color: Schema.NullOr(Color),
  avatar: Schema.NullOr(Avatar),
  position: Schema.Literal("left", "right"),
  /** Null uses the agent's greeting. */
  greeting: Schema.NullOr(trimmed(500)),
  /** Suggested questions, shown until the first message. */
  suggestions: Schema.Array(trimmed(120)).pipe(Schema.maxItems(4)),
  /** Language of the widget's own texts; `auto` uses the page's. */
  language: Schema.Literal("auto", "en", "de"),
  consent: Schema.NullOr(Consent)
}

/** The look of the widget, as stored and as sent to the page. */
export const WidgetLook = Schema.Struct(look)
export type WidgetLook = typeof WidgetLook.Type

export const defaultLook: WidgetLook = {
  color: null,
  avatar: null,
  position: "right",
  greeting: null,
  suggestions: [],
  language: "auto",
  consent: null
}

/** Omitted fields stay. The first change gives the widget its public name. */
export const PatchWidget = Schema.Struct({
  color: optional(look.color),
  avatar: optional(look.avatar),
  position: optional(look.position),
  greeting: optional(look.greeting),
  suggestions: optional(look.suggestions),
  language: optional(look.language),
  consent: optional(look.consent),
  /** Websites that may show it; an empty list allows any website. */
  allowedOrigins: optional(AllowedOrigins),
  /** Sources that visitors without a token may read; null for every source of the agent. */
  sourceScope: optional(Schema.NullOr(SourceScope))
})
export type PatchWidget = typeof PatchWidget.Type

export const AgentWidget = Schema.Struct({
  /** For the `data-agent` attribute of the script. Null before the first change, and when its key was revoked. */
  publicId: Schema.NullOr(Schema.String),
  allowedOrigins: Schema.Array(Schema.String),
  sourceScope: Schema.NullOr(SourceScope),
  look: WidgetLook,
  /** 0 before the first change. */
  version: Schema.Int.pipe(Schema.nonNegative())
})
export type AgentWidget = typeof AgentWidget.Type

/** The settings that a page needs to display the widget before it is opened. */
export const ShownWidget = Schema.Struct({ name: Schema.String, ...look })
