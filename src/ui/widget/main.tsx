/** @jsxImportSource preact */
/**
 * The chat for any page: `<script src="{app_url}/widget.js" data-key="spk_…"></script>`. All of it lives in a
 * shadow tree; the page's scope gets `window.Spoke` and nothing else.
 */
import { render } from "preact"
import tokens from "../tokens.css?inline"
import { Chat } from "./Chat.ts"
import { settingsOf } from "./Settings.ts"
import { languageOf } from "./Texts.ts"
import { type Handle, Widget } from "./Widget.tsx"
import sheet from "./widget.css?inline"

// The element is known only while the script runs for the first time.
const settings = settingsOf(document.currentScript)

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

const mount = () => {
  if (settings === null || Reflect.has(window, "Spoke")) return
  const host = document.createElement("spoke-chat")
  host.lang = languageOf(settings.language)
  host.dataset["position"] = settings.position
  if (settings.accent !== null) {
    host.style.setProperty("--brand", settings.accent)
    host.style.setProperty("--on-brand", inkFor(host))
  }
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
  const chat = new Chat(settings)
  const handle: Handle = { open: () => undefined, close: () => undefined }
  render(<Widget chat={chat} handle={handle} initially={settings.open} />, root)
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
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mount, { once: true })
else mount()
