/** One conversation, live, with take-over and reply. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { ArrowLeft, CircleCheck, PanelRight } from "lucide-react"
import { type ReactNode, useEffect, useState } from "react"
import { Link } from "wouter"
import { agent } from "../../api/Agents.ts"
import { isUnknownId } from "../../api/Client.ts"
import { act, conversation, type Conversation as Found, isChannel } from "../../api/Conversations.ts"
import { markRead, patch } from "../../api/Inbox.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Avatar } from "../../components/Avatar.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Question } from "../../components/Dialog.tsx"
import { Empty, Unloaded } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Skeleton } from "../../components/feedback/Skeleton.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { nameWindow } from "../../window/title.ts"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Composer, Underway, useDrafts } from "./Composer.tsx"
import type { Live } from "./useLive.ts"
import { Messages } from "./Messages.tsx"
import css from "./Thread.module.css"
import { tones, useCustomer, words as shared } from "./words.ts"

const words = texts(
  {
    back: "All conversations",
    takeover: "Take over",
    release: "Give back to the agent",
    close: "Close conversation",
    closeQuestion:
      "It cannot be opened again. A customer of a messaging channel who writes again begins a new one.",
    closed: "This conversation is closed. Nobody answers in it any more.",
    details: "Details",
    missing: "There is no such conversation",
    missingLead: "It may have been erased, or the address is wrong.",
    quiet: "Not connected. New messages come every few seconds."
  },
  {
    back: "Alle Gespräche",
    takeover: "Übernehmen",
    release: "Dem Agenten zurückgeben",
    close: "Gespräch schließen",
    closeQuestion:
      "Es lässt sich nicht wieder öffnen. Schreibt der Kunde über einen Nachrichtenkanal erneut, beginnt ein neues.",
    closed: "Dieses Gespräch ist geschlossen. Darin antwortet niemand mehr.",
    details: "Details",
    missing: "Dieses Gespräch gibt es nicht",
    missingLead: "Vielleicht wurde es gelöscht, oder die Adresse stimmt nicht.",
    quiet: "Nicht verbunden. Neue Nachrichten kommen alle paar Sekunden."
  }
)

const Buttons = ({ found }: { readonly found: Found }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: ["conversations"] })
  const change = useMutation({
    mutationFn: (change: "takeover" | "release") => act(found.id, change),
    // After a refusal the displayed state may be outdated, so it is read again.
    onSettled: refresh
  })
  const { state } = found
  const open = state === "AI_ACTIVE" || state === "HUMAN_REQUESTED"
  const [asking, setAsking] = useState(false)
  useShortcuts({
    ...(open && !change.isPending ? { t: () => change.mutate("takeover") } : {}),
    ...(state === "CLOSED" ? {} : { e: () => setAsking(true) })
  })
  return (
    <>
      {change.error === null ? null : <Problem problem={change.error} />}
      {open ? (
        <Button kind="primary" busy={change.isPending} onClick={() => change.mutate("takeover")}>
          {t.takeover}
        </Button>
      ) : null}
      {state === "HUMAN_ACTIVE" || state === "HUMAN_REQUESTED" ? (
        <Button busy={change.isPending} onClick={() => change.mutate("release")}>
          {t.release}
        </Button>
      ) : null}
      {state === "CLOSED" ? null : (
        <>
          <Button kind="quiet" icon aria-label={t.close} onClick={() => setAsking(true)}>
            <CircleCheck aria-hidden size={18} />
          </Button>
          <Question
            title={t.close}
            question={t.closeQuestion}
            action={t.close}
            onConfirm={() => act(found.id, "close").finally(refresh)}
            isOpen={asking}
            onOpenChange={setAsking}
          />
        </>
      )}
    </>
  )
}

/** Marks messages as read while the page is visible. */
const useReading = (found: Found | undefined, last: string | undefined) => {
  const queries = useQueryClient()
  const id = found?.id
  const unread = found?.unread === true
  useEffect(() => {
    if (id === undefined || last === undefined || !unread) return
    const read = () => {
      if (document.visibilityState !== "visible") return
      document.removeEventListener("visibilitychange", read)
      markRead(id, last).then(
        () => {
          patch(queries, id, { unread: false })
          void queries.invalidateQueries({ queryKey: ["conversations", "unread"] })
        },
        // It stays unread, and is marked with the next message.
        () => undefined
      )
    }
    document.addEventListener("visibilitychange", read)
    read()
    return () => document.removeEventListener("visibilitychange", read)
  }, [id, last, unread, queries])
}

interface Props {
  readonly id: string
  readonly user: User
  readonly live: Live
  /** Suffix of the list's path. */
  readonly search: string
  readonly runId: string | null
  readonly onTrace: (runId: string | null) => void
  readonly isOpen: boolean
  readonly onDetails: () => void
}

const Frame = ({ children, search }: { readonly children: ReactNode; readonly search: string }) => {
  const t = useText(words)
  return (
    <div className={css["thread"]}>
      <Link href={`/conversations${search}`} className={css["back"] ?? ""}>
        <ArrowLeft aria-hidden size={20} />
        <span className="visually-hidden">{t.back}</span>
      </Link>
      {children}
    </div>
  )
}

export const Thread = ({ id, isOpen, live, onDetails, onTrace, runId, search, user }: Props) => {
  const t = useText(words)
  const names = useText(shared)
  const common = useText(everywhere)
  const nameOf = useCustomer()
  const query = useInfiniteQuery(conversation(id, live.connected))
  const drafts = useDrafts(user.id, id)
  const found = query.data?.pages[0]?.conversation
  const {
    data: answering,
    failureCount,
    isPending
  } = useQuery({ ...agent(found?.agentId ?? ""), enabled: found !== undefined })
  const customer = found === undefined ? null : nameOf(found)
  useReading(found, query.data?.pages[0]?.messages.at(-1)?.id)
  const title = customer ?? (query.isPending ? common.loading : t.missing)
  useEffect(() => nameWindow(title), [title])

  // The names above the messages may take another line: they are not shown before the agent's is known, or cannot be.
  const isNaming = isPending && failureCount === 0
  const isWaiting = query.isPending || (found !== undefined && isNaming)
  if (query.data === undefined || found === undefined || customer === null || isWaiting) {
    return (
      <Frame search={search}>
        {isWaiting ? (
          <>
            <h1 className="visually-hidden">{title}</h1>
            <Skeleton rows={4} person />
          </>
        ) : isUnknownId(query.error) ? (
          <>
            <h1 className="visually-hidden">{title}</h1>
            <Empty title={t.missing}>{t.missingLead}</Empty>
          </>
        ) : (
          <>
            <h1 className="visually-hidden">{common.failed}</h1>
            <Unloaded query={query} />
          </>
        )}
      </Frame>
    )
  }
  const may = atLeast(user.role, "agent")
  const pages = query.data.pages.toReversed()
  return (
    <Frame search={search}>
      <header className={css["head"]}>
        <span className={css["avatar"]}>
          <Avatar name={customer} />
        </span>
        <div className={css["who"]}>
          <h1 className={css["name"]}>{customer}</h1>
          <span className={css["lead"]}>
            <Badge tone={tones[found.state]}>{names[found.state]}</Badge>
            <span className={css["where"]}>
              {[isChannel(found.channel) ? names[found.channel] : found.channel, answering?.name ?? ""]
                .filter(Boolean)
                .join(" · ")}
            </span>
          </span>
        </div>
        <div className={css["actions"]}>
          {may ? <Buttons found={found} /> : null}
          <span className={css["details"]}>
            <Button kind="quiet" icon aria-label={t.details} aria-expanded={isOpen} onClick={onDetails}>
              <PanelRight aria-hidden size={18} />
            </Button>
          </span>
        </div>
      </header>
      <Messages
        conversationId={id}
        messages={pages.flatMap((page) => page.messages)}
        entries={pages.flatMap((page) => page.entries)}
        names={{ customer, agent: answering?.name ?? names.agent }}
        userId={user.id}
        typing={live.typing}
        chosen={runId}
        onTrace={may ? onTrace : null}
        older={query.hasNextPage ? () => void query.fetchNextPage() : null}
        loading={query.isFetchingNextPage}
        own={drafts.drafts.at(-1)?.key}
      >
        <Underway {...drafts} />
      </Messages>
      {live.connected ? null : <p className={css["soft"]}>{t.quiet}</p>}
      {found.state === "CLOSED" ? <p className={css["soft"]}>{t.closed}</p> : null}
      {may ? (
        <Composer
          id={id}
          customer={customer}
          known={found.customer}
          send={drafts.send}
          note={drafts.note}
          state={found.state}
        />
      ) : null}
    </Frame>
  )
}
