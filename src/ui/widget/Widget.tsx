/** @jsxImportSource preact */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Chat } from "./Chat.ts"
import { Composer } from "./Composer.tsx"
import { bringsFiles } from "./Files.ts"
import { isComposing } from "../inputEvents.ts"
import { ReplyFollower } from "../ReplyFollower.ts"
import { safeHref } from "../markdown/Href.ts"
import { Icon } from "./Icon.tsx"
import { Link } from "./Prose.tsx"
import { Messages } from "./Messages.tsx"
import { useVisibleArea } from "./VisibleArea.ts"
import type { View } from "./View.ts"

/** Functions of the widget that the page may call. */
export interface Handle {
  open: () => void
  close: () => void
}

const useView = (chat: Chat): View => {
  const [view, setView] = useState(chat.view)
  useEffect(() => chat.listen(() => setView(chat.view)), [chat])
  return view
}

/** A message for screen readers. The id makes them read an equal text of another message, too. */
interface Announcement {
  readonly id: string
  readonly text: string
}

/** Announces each new completed message to screen readers, once. */
const useAnnouncements = (chat: Chat, view: View): ReadonlyArray<Announcement> => {
  const lastId = useRef<string | null>(null)
  const [announcements, setAnnouncements] = useState<ReadonlyArray<Announcement>>([])
  const last = view.messages.at(-1)
  useEffect(() => {
    const previousId = lastId.current
    // Earlier messages of a session are not announced.
    lastId.current = view.ready ? (last?.id ?? "") : null
    if (previousId === null || !view.ready) return
    const previous = view.messages.findIndex(({ id }) => id === previousId)
    const added = view.messages.slice(previous + 1).filter(({ role }) => role !== "user")
    if (added.length === 0) return
    void chat.load().then((markdown) =>
      setAnnouncements(
        added.map(({ content, id, notice }) => {
          const text = notice === null ? content : chat.texts.notices[notice]
          return { id, text: markdown?.spoken(text) ?? text }
        })
      )
    )
  }, [last?.id, view.ready])
  return announcements
}

const Notice = ({ chat, view }: { readonly chat: Chat; readonly view: View }) => {
  const { texts } = chat
  const reply = view.messages.findLast(({ role }) => role === "assistant")
  const stateTexts = {
    // Not shown if the conversation has a notice of it.
    HUMAN_REQUESTED: reply?.notice === "handoff" ? "" : texts.waiting,
    HUMAN_ACTIVE: texts.active,
    CLOSED: texts.closed
  }
  const text = Object.entries(stateTexts).find(([state]) => state === view.state)?.[1]
  const { failedMessageId } = view
  return (
    <div class="notices">
      <p class="notice" role="status">
        {text ?? ""}
      </p>
      <p class="problem" role="alert">
        {view.problem ?? ""}
      </p>
      {view.agent === null && view.problem !== null && (
        <button type="button" class="quiet" onClick={() => void chat.start()}>
          {texts.retry}
        </button>
      )}
      {failedMessageId !== null && view.live === null && view.state === "AI_ACTIVE" && (
        <button type="button" class="quiet" onClick={() => void chat.askAgain(failedMessageId)}>
          {texts.askAgain}
        </button>
      )}
      {view.state === "CLOSED" && view.live === null && (
        <button type="button" class="quiet" onClick={() => chat.startNewConversation()}>
          {texts.again}
        </button>
      )}
    </div>
  )
}

/** The text to which visitors agree by writing. */
const Consent = ({ chat }: { readonly chat: Chat }) => {
  const consent = chat.settings.widget?.consent ?? null
  if (consent === null) return null
  const href = consent.link === null ? null : safeHref(consent.link.url)
  return (
    <p class="consent" dir="auto">
      {consent.text}
      {consent.link !== null && href !== null && (
        <>
          {" "}
          <Link href={href}>{consent.link.label}</Link>
        </>
      )}
    </p>
  )
}

/** Selects what Tab may reach. */
const tabStops =
  "a[href], button:not(:disabled), input:not(:disabled), textarea:not(:disabled), [tabindex='0']"

/** Moves the focus from the last element of `panel` to its first one, and back. */
const keepFocusInside = (panel: HTMLElement, event: KeyboardEvent) => {
  const stops = [...panel.querySelectorAll<HTMLElement>(tabStops)].filter(
    (one) => one.getClientRects().length > 0
  )
  const root = panel.getRootNode()
  const focused = root instanceof ShadowRoot ? root.activeElement : null
  const isAtEdge = focused === (event.shiftKey ? stops[0] : stops.at(-1))
  if (!isAtEdge && focused !== panel) return
  event.preventDefault()
  stops.at(event.shiftKey ? -1 : 0)?.focus()
}

/** Whether the open chat covers the page, as in the style sheet. */
const narrowPage = matchMedia("(max-width: 480px)")

const useNarrowPage = (): boolean => {
  const [isNarrow, setNarrow] = useState(narrowPage.matches)
  useEffect(() => {
    const update = () => setNarrow(narrowPage.matches)
    narrowPage.addEventListener("change", update)
    return () => narrowPage.removeEventListener("change", update)
  }, [])
  return isNarrow
}

const Panel = ({
  chat,
  close,
  takesFocus,
  view
}: {
  readonly chat: Chat
  readonly close: () => void
  /** What gets the focus; null for nothing. */
  readonly takesFocus: "field" | "panel" | null
  readonly view: View
}) => {
  const { texts } = chat
  const field = useRef<HTMLTextAreaElement>(null)
  const panel = useRef<HTMLDivElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const [follower] = useState(() => new ReplyFollower())
  const wasSending = useRef(false)
  const { widget } = chat.settings
  const avatar = widget?.avatar ?? null
  useEffect(() => {
    if (takesFocus !== null) (takesFocus === "field" ? field : panel).current?.focus()
  }, [])
  const isModal = useNarrowPage()
  const root = panel.current?.getRootNode()
  const focusedElement = root instanceof ShadowRoot ? root.activeElement : null
  // If a button disappears when it is pressed, the focus would move to the page.
  useLayoutEffect(() => {
    if (focusedElement !== null && !focusedElement.isConnected) (field.current ?? panel.current)?.focus()
  })
  const sending = view.live !== null && view.live.phase === "streaming"
  useLayoutEffect(() => {
    const list = scroller.current
    const messages = list?.firstElementChild?.children
    if (list === null || messages === undefined) return
    // A message that was just sent is always scrolled into view.
    if (sending && !wasSending.current) follower.follow()
    wasSending.current = sending
    const isLastOwn = view.live === null && view.messages.at(-1)?.role === "user"
    follower.update(list, messages, !isLastOwn)
  }, [view])
  useEffect(() => {
    const list = scroller.current
    if (list === null) return
    const observer = new ResizeObserver(() => follower.resized(list))
    observer.observe(list)
    return () => observer.disconnect()
  }, [])
  const visible = useVisibleArea()
  return (
    <div
      class={visible === undefined ? "panel" : "panel above-keyboard"}
      style={visible && { "--visible-top": `${visible.top}px`, "--visible-height": `${visible.height}px` }}
      id="panel"
      ref={panel}
      role="dialog"
      aria-modal={isModal}
      tabIndex={-1}
      aria-labelledby="title"
      onKeyDown={(event) => {
        if (event.key === "Escape" && !isComposing(event)) close()
        if (event.key === "Tab" && isModal) keepFocusInside(event.currentTarget, event)
      }}
      onDragOver={(event) => {
        if (bringsFiles(event)) event.preventDefault()
      }}
      onDrop={(event) => {
        if (!bringsFiles(event)) return
        event.preventDefault()
        chat.addFiles([...(event.dataTransfer?.files ?? [])])
      }}
    >
      <header>
        {avatar !== null && (
          <span class="avatar" aria-hidden="true">
            {avatar}
          </span>
        )}
        <h2 id="title">{widget?.name ?? view.agent?.name ?? texts.chat}</h2>
        {view.state === "AI_ACTIVE" && view.agent !== null && (
          <button
            type="button"
            class="icon"
            aria-label={texts.human}
            title={texts.human}
            onClick={() => void chat.handoff()}
          >
            <Icon name="person" />
          </button>
        )}
        <button type="button" class="icon" aria-label={texts.close} onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div
        class="scroller"
        ref={scroller}
        role="region"
        tabIndex={0}
        aria-label={texts.conversation}
        onScroll={({ currentTarget }) => follower.scrolled(currentTarget)}
      >
        <Messages chat={chat} view={view} />
      </div>
      <Notice chat={chat} view={view} />
      {view.state !== "CLOSED" && <Composer chat={chat} field={field} view={view} />}
      <Consent chat={chat} />
    </div>
  )
}

export const Widget = ({
  chat,
  handle,
  initiallyOpen,
  isPreview
}: {
  readonly chat: Chat
  readonly handle: Handle
  readonly initiallyOpen: boolean
  /** The preview never takes the focus. */
  readonly isPreview: boolean
}) => {
  const view = useView(chat)
  const announcements = useAnnouncements(chat, view)
  const [open, setOpen] = useState(initiallyOpen)
  const wasOpened = useRef(false)
  const launcher = useRef<HTMLButtonElement>(null)
  const losesFocus = useRef(false)
  const { texts } = chat
  const openPanel = () => {
    wasOpened.current = true
    setOpen(true)
  }
  const close = () => {
    const root = launcher.current?.getRootNode()
    // The focus stays where it is if the page closes the chat while the visitor types elsewhere.
    losesFocus.current = root instanceof ShadowRoot && root.activeElement !== null
    setOpen(false)
  }
  handle.open = openPanel
  handle.close = close
  useLayoutEffect(() => {
    // On narrow pages the launcher is hidden before.
    if (!open && losesFocus.current) launcher.current?.focus()
  }, [open])
  useEffect(() => {
    if (open) void chat.load()
    if (open || chat.hasStoredSession) void chat.start()
  }, [open])
  return (
    <section aria-label={texts.chat} class={open ? "open" : ""}>
      <div class="hidden" role="log" aria-live="polite">
        {announcements.map(({ id, text }) => (
          <p key={id}>{text}</p>
        ))}
      </div>
      {open && (
        <Panel
          chat={chat}
          close={close}
          // A chat that is open from the beginning takes the focus only if it covers the page. It does not open the
          // on-screen keyboard.
          takesFocus={isPreview ? null : wasOpened.current ? "field" : narrowPage.matches ? "panel" : null}
          view={view}
        />
      )}
      <button
        ref={launcher}
        type="button"
        class="launcher"
        aria-label={open ? texts.close : texts.open}
        aria-expanded={open}
        onClick={() => (open ? close() : openPanel())}
      >
        <Icon name={open ? "close" : "chat"} />
      </button>
    </section>
  )
}
