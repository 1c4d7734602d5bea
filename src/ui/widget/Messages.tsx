/** @jsxImportSource preact */
import { useRef, useState } from "preact/hooks"
import type { Chat } from "./Chat.ts"
import type { Media, Message } from "./Client.ts"
import type { Source } from "../EventStream.ts"
import { headingPath } from "../headingPath.ts"
import { safeHref } from "../markdown/Href.ts"
import { Icon } from "./Icon.tsx"
import { Link, Prose } from "./Prose.tsx"
import type { View } from "./View.ts"

/** The host of an address; empty when it has none. */
const hostOf = (href: string) => (URL.canParse(href) ? new URL(href).host : "")

const attachmentPath = /^\/api\/sdk\/attachments\/[\w-]+$/u

/** A file of the conversation, downloaded when its button is pressed. */
const Attachment = ({ chat, media }: { readonly chat: Chat; readonly media: Media }) => {
  const [failed, setFailed] = useState(false)
  const save = async () => {
    setFailed(false)
    if (chat.sessionId === null || !attachmentPath.test(media.url))
      throw new Error("Not a file of this conversation.")
    const blob = await chat.client.file(chat.sessionId, media.url)
    const address = URL.createObjectURL(blob)
    const link = document.createElement("a")
    link.href = address
    link.download = media.name
    link.click()
    setTimeout(() => URL.revokeObjectURL(address), 10_000)
  }
  const href = safeHref(media.url)
  if (href !== null) return <Link href={href}>{`${media.name} (${href})`}</Link>
  return (
    <>
      <button
        type="button"
        class="file"
        aria-label={chat.texts.download(media.name)}
        onClick={() => void save().catch(() => setFailed(true))}
      >
        <Icon name="attach" /> <span>{media.name}</span>
      </button>
      <span role="alert">{failed ? chat.texts.wrong : ""}</span>
    </>
  )
}

/** A reply of the agent. Citations are buttons that lead to their sources. A citation without a source is not shown. */
const Reply = ({
  chat,
  citations,
  streaming = false,
  text,
  view
}: {
  readonly chat: Chat
  readonly view: View
  readonly text: string
  readonly citations: ReadonlyArray<Source>
  readonly streaming?: boolean
}) => {
  const list = useRef<HTMLOListElement>(null)
  const show = (index: number) => {
    const item = list.current?.querySelector(`[data-index="${index}"]`)
    if (item instanceof HTMLElement) item.focus()
  }
  const chip = (index: number) => {
    const source = citations.find((citation) => citation.index === index)
    if (source === undefined) return null
    return (
      <button
        type="button"
        class="chip"
        aria-label={chat.texts.source(index, headingPath(source.title))}
        onClick={() => show(index)}
      >
        {index}
      </button>
    )
  }
  return (
    <>
      <Prose markdown={view.markdown} text={text} citation={chip} streaming={streaming} />
      {citations.length > 0 && (
        <ol class="sources" ref={list} aria-label={chat.texts.sources(citations.length)}>
          {citations.map(({ index, title, url }) => {
            const href = safeHref(url)
            return (
              <li key={index} value={index} tabIndex={-1} data-index={index}>
                {href === null ? (
                  headingPath(title)
                ) : (
                  <>
                    <Link href={href}>{title === "" ? href : headingPath(title)}</Link>{" "}
                    <span>{hostOf(href)}</span>
                  </>
                )}
              </li>
            )
          })}
        </ol>
      )}
    </>
  )
}

const Feedback = ({ chat, message }: { readonly chat: Chat; readonly message: Message }) => {
  const { texts } = chat
  const [rating, setRating] = useState(message.rating)
  const [rated, setRated] = useState(false)
  const [isCommenting, setCommenting] = useState(false)
  const [comment, setComment] = useState("")
  const [problem, setProblem] = useState(false)
  const unhelpful = useRef<HTMLButtonElement>(null)
  const rate = async (value: 1 | -1, comment: string) => {
    if (chat.sessionId === null) return
    try {
      await chat.client.rate(chat.sessionId, message.id, value, comment)
      setRating(value)
      setRated(true)
      setProblem(false)
      setCommenting(value === -1 && comment === "" && !isCommenting)
      // The form disappears, and would lose the focus.
      if (value === -1 && isCommenting) unhelpful.current?.focus()
    } catch {
      setProblem(true)
    }
  }
  return (
    <div class="feedback">
      <button
        type="button"
        aria-label={texts.helpful}
        aria-pressed={rating === 1}
        onClick={() => void rate(1, "")}
      >
        <Icon name="up" />
      </button>
      <button
        type="button"
        ref={unhelpful}
        aria-label={texts.unhelpful}
        aria-pressed={rating === -1}
        onClick={() => void rate(-1, "")}
      >
        <Icon name="down" />
      </button>
      <span role="status">{problem ? texts.wrong : rated && !isCommenting ? texts.thanks : ""}</span>
      {isCommenting && (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            void rate(-1, comment)
          }}
        >
          <input
            aria-label={texts.comment}
            placeholder={texts.comment}
            maxLength={4000}
            value={comment}
            onInput={(event) => setComment(event.currentTarget.value)}
          />
          <button type="submit" class="quiet">
            {texts.submit}
          </button>
        </form>
      )}
    </div>
  )
}

const StoredMessage = ({
  agent,
  chat,
  message,
  view
}: {
  readonly agent: string
  readonly chat: Chat
  readonly message: Message
  readonly view: View
}) => {
  const { author, citations, media, notice, role } = message
  const { texts } = chat
  const content = notice === null ? message.content : texts.notices[notice]
  const isAgent = author === "agent" || author === null
  const isVisitor = role === "user"
  const name = isVisitor
    ? texts.you
    : author === "human"
      ? texts.person
      : author === "system"
        ? texts.system
        : agent
  return (
    <li class={isVisitor ? "mine" : "theirs"}>
      <span class={isVisitor || isAgent ? "hidden" : "author"}>{name}</span>
      <div class="bubble" dir="auto">
        {isVisitor ? (
          <p class="plain">{content}</p>
        ) : isAgent ? (
          <Reply chat={chat} view={view} text={content} citations={citations} />
        ) : (
          <Prose markdown={view.markdown} text={content} />
        )}
        {media.map((file) => (
          <Attachment key={file.url} chat={chat} media={file} />
        ))}
      </div>
      {role === "assistant" && author === "agent" && <Feedback chat={chat} message={message} />}
    </li>
  )
}

const TypingDots = ({ label }: { readonly label: string }) => (
  <span class="dots" role="img" aria-label={label}>
    <i />
    <i />
    <i />
  </span>
)

/** Suggested questions, until the conversation has begun. */
const Suggestions = ({ chat, view }: { readonly chat: Chat; readonly view: View }) => {
  const suggestions = chat.settings.widget?.suggestions ?? []
  const hasBegun = view.messages.length > 0 || view.live !== null || view.state !== "AI_ACTIVE"
  if (!view.ready || hasBegun || suggestions.length === 0) return null
  return (
    <li class="theirs">
      <ul class="suggestions" aria-label={chat.texts.suggestions}>
        {suggestions.map((question) => (
          <li key={question}>
            <button type="button" dir="auto" onClick={() => void chat.send(question, [])}>
              {question}
            </button>
          </li>
        ))}
      </ul>
    </li>
  )
}

/** The stored messages, and the reply that is being received. */
export const Messages = ({ chat, view }: { readonly chat: Chat; readonly view: View }) => {
  const agent = chat.settings.widget?.name ?? view.agent?.name ?? chat.texts.chat
  const { live } = view
  return (
    <ol class="messages">
      {view.agent !== null && (
        <li class="theirs">
          <span class="hidden">{agent}</span>
          <div class="bubble" dir="auto">
            <Prose
              markdown={view.markdown}
              text={chat.settings.widget?.greeting ?? view.agent.greeting ?? chat.texts.greeting}
            />
          </div>
        </li>
      )}
      <Suggestions chat={chat} view={view} />
      {view.messages.map((message) => (
        <StoredMessage key={message.id} agent={agent} chat={chat} message={message} view={view} />
      ))}
      {live !== null && live.message !== null && (
        <li class="mine">
          <span class="hidden">{chat.texts.you}</span>
          <div class="bubble" dir="auto">
            <p class="plain">{live.message}</p>
            {live.files.map((name) => (
              <span class="file">
                <Icon name="attach" /> <span>{name}</span>
              </span>
            ))}
          </div>
        </li>
      )}
      {(live !== null || view.typing) && (
        <li class="theirs">
          <span class="hidden">{agent}</span>
          <div class="bubble" dir="auto">
            {live === null || live.reply === "" ? (
              <TypingDots label={chat.texts.typing} />
            ) : (
              <Reply chat={chat} view={view} text={live.reply} citations={live.citations} streaming />
            )}
          </div>
        </li>
      )}
    </ol>
  )
}
