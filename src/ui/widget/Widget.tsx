/** @jsxImportSource preact */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Chat } from "./Chat.ts"
import { Composer } from "./Composer.tsx"
import { safeHref } from "../markdown/Href.ts"
import { Icon } from "./Icon.tsx"
import { Link } from "./Prose.tsx"
import { Messages } from "./Messages.tsx"
import type { View } from "./View.ts"

/** Functions of the widget that the page may call. */
export interface Handle {
  open: () => void
  close: () => void
}

const useView = (chat: Chat): View => {
  const [view, setView] = useState(chat.now)
  useEffect(() => chat.listen(() => setView(chat.now)), [chat])
  return view
}

/** A message as it is read aloud. An equal text of another message is read too. */
interface Spoken {
  readonly id: string
  readonly text: string
}

/** The text for screen readers: each completed reply, once, as it is displayed. Earlier replies are not read again. */
const useSpoken = (chat: Chat, view: View): Spoken | null => {
  const known = useRef<string | null>(null)
  const [spoken, setSpoken] = useState<Spoken | null>(null)
  const last = view.messages.at(-1)
  useEffect(() => {
    if (!view.ready) return
    const before = known.current
    known.current = last?.id ?? ""
    if (before !== null && last !== undefined && last.role !== "user" && last.id !== before) {
      const content = last.notice === null ? last.content : chat.texts.notices[last.notice]
      const { id } = last
      void chat.load().then((markdown) => setSpoken({ id, text: markdown?.spoken(content) ?? content }))
    }
  }, [last?.id, view.ready])
  return spoken
}

const Notice = ({ chat, view }: { readonly chat: Chat; readonly view: View }) => {
  const { texts } = chat
  const reply = view.messages.findLast(({ role }) => role === "assistant")
  const told = {
    // Said once: as a message of the conversation, where it is one.
    HUMAN_REQUESTED: reply?.notice === "handoff" ? "" : texts.waiting,
    HUMAN_ACTIVE: texts.active,
    CLOSED: texts.closed
  }
  const text = Object.entries(told).find(([state]) => state === view.state)?.[1]
  const { failed } = view
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
      {failed !== null && view.live === null && view.state === "AI_ACTIVE" && (
        <button type="button" class="quiet" onClick={() => void chat.askAgain(failed)}>
          {texts.askAgain}
        </button>
      )}
      {view.state === "CLOSED" && view.live === null && (
        <button type="button" class="quiet" onClick={() => chat.again()}>
          {texts.again}
        </button>
      )}
    </div>
  )
}

/** The text to which the visitor agrees. */
const Consent = ({ chat }: { readonly chat: Chat }) => {
  const consent = chat.settings.look?.consent ?? null
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

/** Whether the last line is in view, or nearly. */
const isAtEnd = ({ clientHeight, scrollHeight, scrollTop }: Element) =>
  scrollHeight - scrollTop - clientHeight < 48

const Panel = ({
  chat,
  close,
  quiet,
  view
}: {
  readonly chat: Chat
  readonly close: () => void
  readonly quiet: boolean
  readonly view: View
}) => {
  const { texts } = chat
  const field = useRef<HTMLTextAreaElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const following = useRef(true)
  const wasSending = useRef(false)
  /** Scroll position after the last new text. */
  const placedAt = useRef(0)
  const { look } = chat.settings
  const avatar = look?.avatar ?? null
  useEffect(() => {
    if (!quiet) field.current?.focus()
  }, [])
  const panel = useRef<HTMLDivElement>(null)
  const root = panel.current?.getRootNode()
  const focused = root instanceof ShadowRoot ? root.activeElement : null
  // A button that disappears when it was pressed would leave the focus to the page.
  useLayoutEffect(() => {
    if (focused !== null && !focused.isConnected) (field.current ?? panel.current)?.focus()
  })
  const sending = view.live !== null && view.live.phase === "streaming"
  useLayoutEffect(() => {
    const { current } = scroller
    if (current === null) return
    const isNewlySent = sending && !wasSending.current
    wasSending.current = sending
    // A scroll event comes with the next frame, and the next words of a reply may come before it.
    const isScrolledUp = current.scrollTop < placedAt.current && !isAtEnd(current)
    // A message that was just sent is shown from wherever the visitor was reading.
    following.current = isNewlySent || (following.current && !isScrolledUp)
    if (!following.current) return
    current.scrollTop = current.scrollHeight
    placedAt.current = current.scrollTop
  }, [view])
  return (
    <div
      class="panel"
      id="panel"
      ref={panel}
      role="dialog"
      tabIndex={-1}
      aria-labelledby="title"
      onKeyDown={(event) => {
        if (event.key === "Escape" && !event.isComposing) close()
      }}
    >
      <header>
        {avatar !== null && (
          <span class="avatar" aria-hidden="true">
            {avatar}
          </span>
        )}
        <h2 id="title">{look?.name ?? view.agent?.name ?? texts.chat}</h2>
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
        onScroll={({ currentTarget }) => {
          following.current = isAtEnd(currentTarget)
        }}
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
  initially,
  quiet
}: {
  readonly chat: Chat
  readonly handle: Handle
  readonly initially: boolean
  /** Never takes the focus by itself. */
  readonly quiet: boolean
}) => {
  const view = useView(chat)
  const spoken = useSpoken(chat, view)
  const [open, setOpen] = useState(initially)
  const launcher = useRef<HTMLButtonElement>(null)
  const { texts } = chat
  const close = () => {
    const root = launcher.current?.getRootNode()
    setOpen(false)
    // The page may close it while its visitor writes elsewhere.
    if (root instanceof ShadowRoot && root.activeElement !== null) launcher.current?.focus()
  }
  handle.open = () => setOpen(true)
  handle.close = close
  useEffect(() => {
    if (open) void chat.load()
    if (open || chat.known) void chat.start()
  }, [open])
  return (
    <section aria-label={texts.chat} class={open ? "open" : ""}>
      <div class="hidden" role="log" aria-live="polite">
        {spoken !== null && <p key={spoken.id}>{spoken.text}</p>}
      </div>
      {open && <Panel chat={chat} close={close} quiet={quiet} view={view} />}
      <button
        ref={launcher}
        type="button"
        class="launcher"
        aria-label={open ? texts.close : texts.open}
        aria-expanded={open}
        onClick={() => (open ? close() : setOpen(true))}
      >
        <Icon name={open ? "close" : "chat"} />
      </button>
    </section>
  )
}
