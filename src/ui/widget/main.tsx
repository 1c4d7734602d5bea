/** @jsxImportSource preact */
/**
 * The chat for any page: `<script src="{app_url}/widget.js" data-agent="wgt_…" async></script>`. It renders into a
 * shadow tree. Its only global is `window.Spoke`.
 */
import { render } from "preact"
import tokensCss from "../tokens.css?inline"
import { Chat } from "./Chat.ts"
import { type Client, clientOf } from "./Client.ts"
import { previewClient, type PreviewMessage } from "./Preview.ts"
import { readScriptTag, type ScriptTag, type Settings, settingsOf } from "./Settings.ts"
import { languageOf } from "./Texts.ts"
import { type Handle, Widget } from "./Widget.tsx"
import widgetCss from "./widget.css?inline"

// Only available while the script is executed.
const scriptTag = readScriptTag(document.currentScript)

/**
 * Black or white, whichever has more contrast with the brand colour of the widget. The browser resolves the variables
 * of the page in it. White if the colour is not known.
 */
const textColorFor = (root: ShadowRoot): string => {
  const context = document.createElement("canvas").getContext("2d")
  if (context === null) return "#fff"
  const probe = document.createElement("span")
  probe.style.backgroundColor = "var(--spoke-color)"
  root.append(probe)
  context.fillStyle = getComputedStyle(probe).backgroundColor
  probe.remove()
  context.fillRect(0, 0, 1, 1)
  const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data
  const linear = [red, green, blue].map((value) => (value / 255) ** 2.2)
  const light = 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0)
  return light > 0.18 ? "#000" : "#fff"
}

const applyStyle = (host: HTMLElement, root: ShadowRoot, { accent, language, position }: Settings) => {
  host.lang = languageOf(language)
  host.dataset["position"] = position
  if (accent === null) {
    host.style.removeProperty("--spoke-color")
    host.style.removeProperty("--on-spoke-color")
    return
  }
  host.style.setProperty("--spoke-color", accent)
  host.style.setProperty("--on-spoke-color", textColorFor(root))
}

/**
 * Adds `host` to the page again, with its scroll position, when the page replaces or empties its body. Returns a
 * function that stops this.
 */
const keepOnPage = (host: HTMLElement, root: ShadowRoot) => {
  let scrollTop = 0
  root.addEventListener(
    "scroll",
    ({ target }) => {
      if (target instanceof Element) scrollTop = target.scrollTop
    },
    true
  )
  let frame = 0
  const check = () => {
    cancelAnimationFrame(frame)
    // In the next frame, so that a page that always removes it is not blocked.
    if (!host.isConnected) frame = requestAnimationFrame(place)
  }
  const observer = new MutationObserver(check)
  const place = () => {
    document.body.append(host)
    root.querySelector(".scroller")?.scrollTo(0, scrollTop)
    for (const parent of [document.documentElement, document.body])
      observer.observe(parent, { childList: true })
  }
  place()
  return () => {
    cancelAnimationFrame(frame)
    observer.disconnect()
  }
}

/** Adds the chat to the page. Returns a function that applies other settings, for the preview. */
const mount = (settings: Settings, client: Client, storageName: string | null) => {
  const host = document.createElement("spoke-chat")
  const root = host.attachShadow({ mode: "open" })
  // A content security policy without 'unsafe-inline' allows style sheets that a script creates.
  root.adoptedStyleSheets = [
    tokensCss.replace(/:root(\[[^\]]+\])?/gu, (_, attribute?: string) =>
      attribute === undefined ? ":host" : `:host(${attribute})`
    ),
    widgetCss
  ].map((text) => {
    const styleSheet = new CSSStyleSheet()
    styleSheet.replaceSync(text)
    return styleSheet
  })
  // Pages see the widget itself as the target, and not its field. Their shortcuts would act while the visitor types.
  for (const type of ["keydown", "keypress", "keyup"])
    root.addEventListener(type, (event) => event.stopPropagation())
  const release = keepOnPage(host, root)
  applyStyle(host, root, settings)
  // The page's style sheets, which may define the colour, may come after the script.
  const loaded = () => applyStyle(host, root, settings)
  if (document.readyState !== "complete") addEventListener("load", loaded, { once: true })
  const chat = new Chat(settings, client, storageName)
  const handle: Handle = { open: () => undefined, close: () => undefined }
  render(
    <Widget chat={chat} handle={handle} initiallyOpen={settings.open} isPreview={storageName === null} />,
    root
  )
  const spoke = {
    open: () => handle.open(),
    close: () => handle.close(),
    identify: (externalEndUserId: string) => chat.identify(externalEndUserId),
    destroy: () => {
      chat.end()
      removeEventListener("load", loaded)
      release()
      render(null, root)
      host.remove()
      Reflect.deleteProperty(window, "Spoke")
    }
  }
  Object.defineProperty(window, "Spoke", { value: Object.freeze(spoke), configurable: true })
  return (newSettings: Settings, scheme: string) => {
    removeEventListener("load", loaded)
    applyStyle(host, root, newSettings)
    host.dataset["scheme"] = scheme
    chat.show(newSettings)
  }
}

const start = async (tag: ScriptTag) => {
  if (Reflect.has(window, "Spoke")) return
  const tagSettings = settingsOf(tag, null)
  const client = clientOf(tagSettings)
  // Without its settings the chat still opens, and shows why it does not work.
  const widget = tag.hasPublicName ? await client.widget().catch(() => null) : null
  if (Reflect.has(window, "Spoke")) return
  mount(settingsOf(tag, widget), client, `spoke.widget.${tagSettings.base}.${tagSettings.key}`)
}

/** Shows the settings that the dashboard posts, each time they change. */
const startPreview = (tag: ScriptTag) => {
  let update: ReturnType<typeof mount> | null = null
  addEventListener("message", ({ data, origin, source }: MessageEvent<PreviewMessage>) => {
    if (origin !== location.origin || source !== parent || data.look === undefined) return
    const settings = settingsOf(tag, data.look)
    update ??= mount(settings, previewClient(settings), null)
    update(settings, data.scheme)
  })
}

const run = () => {
  if (scriptTag === null) return
  if (scriptTag.isPreview) startPreview(scriptTag)
  else void start(scriptTag)
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", run, { once: true })
else run()
