/** @jsxImportSource preact */
/**
 * The chat for any page: `<script src="{app_url}/widget.js" data-agent="wgt_…" async></script>`. All of it lives in a
 * shadow tree; the page's scope gets `window.Spoke` and nothing else.
 */
import { render } from "preact"
import tokens from "../tokens.css?inline"
import { Chat } from "./Chat.ts"
import { type Client, clientOf } from "./Client.ts"
import { type Previewed, previewClient } from "./Preview.ts"
import { type Settings, settingsOf, type Tag, tagOf } from "./Settings.ts"
import { languageOf } from "./Texts.ts"
import { type Handle, Widget } from "./Widget.tsx"
import sheet from "./widget.css?inline"

// The element is known only while the script runs for the first time.
const tag = tagOf(document.currentScript)

/** Black or white, whichever reads better on the colour that the host has taken. */
const inkFor = (host: HTMLElement): string => {
  const context = document.createElement("canvas").getContext("2d")
  if (context === null) return "#fff"
  context.fillStyle = host.style.getPropertyValue("--brand")
  context.fillRect(0, 0, 1, 1)
  const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data
  const linear = [red, green, blue].map((value) => (value / 255) ** 2.2)
  const light = 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0)
  return light > 0.18 ? "#000" : "#fff"
}

const dress = (host: HTMLElement, { accent, language, position }: Settings) => {
  host.lang = languageOf(language)
  host.dataset["position"] = position
  if (accent === null) {
    host.style.removeProperty("--brand")
    host.style.removeProperty("--on-brand")
    return
  }
  host.style.setProperty("--brand", accent)
  host.style.setProperty("--on-brand", inkFor(host))
}

/** Puts the chat on the page; what it returns gives it another look. */
const mount = (settings: Settings, client: Client, memory: string | null) => {
  const host = document.createElement("spoke-chat")
  dress(host, settings)
  const root = host.attachShadow({ mode: "open" })
  // Built by script: a policy without 'unsafe-inline' has nothing against it.
  root.adoptedStyleSheets = [
    tokens.replace(/:root(\[[^\]]+\])?/gu, (_, given?: string) =>
      given === undefined ? ":host" : `:host(${given})`
    ),
    sheet
  ].map((text) => {
    const made = new CSSStyleSheet()
    made.replaceSync(text)
    return made
  })
  document.body.append(host)
  const chat = new Chat(settings, client, memory)
  const handle: Handle = { open: () => undefined, close: () => undefined }
  render(<Widget chat={chat} handle={handle} initially={settings.open} quiet={memory === null} />, root)
  const spoke = {
    open: () => handle.open(),
    close: () => handle.close(),
    identify: (externalEndUserId: string) => chat.identify(externalEndUserId),
    destroy: () => {
      chat.end()
      render(null, root)
      host.remove()
      Reflect.deleteProperty(window, "Spoke")
    }
  }
  Object.defineProperty(window, "Spoke", { value: Object.freeze(spoke), configurable: true })
  return (next: Settings, scheme: string) => {
    dress(host, next)
    host.dataset["scheme"] = scheme
    chat.show(next)
  }
}

const begin = async (own: Tag) => {
  if (Reflect.has(window, "Spoke")) return
  const first = settingsOf(own, null)
  const client = clientOf(first)
  // Without its look the widget is still a chat, and says itself why it does not work.
  const look = own.isNamed ? await client.look().catch(() => null) : null
  if (Reflect.has(window, "Spoke")) return
  mount(settingsOf(own, look), client, `spoke.widget.${first.base}.${first.key}`)
}

/** The dashboard tells what is to be shown, each time that it changes. */
const beginPreview = (own: Tag) => {
  let show: ReturnType<typeof mount> | null = null
  addEventListener("message", ({ data, origin, source }: MessageEvent<Previewed>) => {
    if (origin !== location.origin || source !== parent || data.look === undefined) return
    const settings = settingsOf(own, data.look)
    show ??= mount(settings, previewClient(settings), null)
    show(settings, data.scheme)
  })
}

const run = () => {
  if (tag === null) return
  if (tag.isPreview) beginPreview(tag)
  else void begin(tag)
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", run, { once: true })
else run()
