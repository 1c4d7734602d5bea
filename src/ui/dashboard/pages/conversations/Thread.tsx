/** One conversation, live, with take-over and reply. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { ArrowLeft, CircleCheck, PanelRight } from "lucide-react"
import { type ReactNode, useEffect, useState } from "react"
import { Link } from "wouter"
import { agent as agentQuery } from "../../api/Agents.ts"
import { isUnknownId } from "../../api/Client.ts"
import {
  changeState,
  type Conversation,
  conversation as conversationQuery,
  isChannel
} from "../../api/Conversations.ts"
import { markRead, patchConversation } from "../../api/Inbox.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Avatar } from "../../components/Avatar.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { ConfirmDialog } from "../../components/Dialog.tsx"
import { Empty, LoadError } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Skeleton } from "../../components/feedback/Skeleton.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { setPageName } from "../../window/windowTitle.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Composer, UnsentList, useUnsentMessages } from "./Composer.tsx"
import type { Live } from "./useLive.ts"
import { Messages } from "./Messages.tsx"
import css from "./Thread.module.css"
import { tones, useCustomer, words as sharedWords } from "./words.ts"

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

const ConversationActions = ({ conversation }: { readonly conversation: Conversation }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: ["conversations"] })
  const change = useMutation({
    mutationFn: (change: "takeover" | "release") => changeState(conversation.id, change),
    // After a refusal the displayed state may be outdated, so it is read again.
    onSettled: refresh
  })
  const { state } = conversation
  const canTakeOver = state === "AI_ACTIVE" || state === "HUMAN_REQUESTED"
  const [isAskingToClose, setAskingToClose] = useState(false)
  useShortcuts({
    ...(canTakeOver && !change.isPending ? { t: () => change.mutate("takeover") } : {}),
    ...(state === "CLOSED" ? {} : { e: () => setAskingToClose(true) })
  })
  return (
    <>
      {change.error === null ? null : <Problem problem={change.error} />}
      {canTakeOver ? (
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
          <Button kind="quiet" icon aria-label={t.close} onClick={() => setAskingToClose(true)}>
            <CircleCheck aria-hidden size={18} />
          </Button>
          <ConfirmDialog
            title={t.close}
            question={t.closeQuestion}
            action={t.close}
            onConfirm={() => changeState(conversation.id, "close").finally(refresh)}
            isOpen={isAskingToClose}
            onOpenChange={setAskingToClose}
          />
        </>
      )}
    </>
  )
}

/** Marks messages as read while the page is visible. */
const useMarkRead = (conversation: Conversation | undefined, lastMessageId: string | undefined) => {
  const queries = useQueryClient()
  const id = conversation?.id
  const unread = conversation?.unread === true
  useEffect(() => {
    if (id === undefined || lastMessageId === undefined || !unread) return
    const read = () => {
      if (document.visibilityState !== "visible") return
      document.removeEventListener("visibilitychange", read)
      markRead(id, lastMessageId).then(
        () => {
          patchConversation(queries, id, { unread: false })
          void queries.invalidateQueries({ queryKey: ["conversations", "unread"] })
        },
        // The conversation stays unread. It is marked again with the next message.
        () => undefined
      )
    }
    document.addEventListener("visibilitychange", read)
    read()
    return () => document.removeEventListener("visibilitychange", read)
  }, [id, lastMessageId, unread, queries])
}

interface Props {
  readonly id: string
  readonly user: User
  readonly live: Live
  /** Query string of the list, with its filter. */
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
  const names = useText(sharedWords)
  const common = useText(commonTexts)
  const nameOf = useCustomer()
  const query = useInfiniteQuery(conversationQuery(id, live.connected))
  const unsent = useUnsentMessages(user.id, id)
  const conversation = query.data?.pages[0]?.conversation
  const {
    data: agent,
    failureCount,
    isPending
  } = useQuery({ ...agentQuery(conversation?.agentId ?? ""), enabled: conversation !== undefined })
  const customer = conversation === undefined ? null : nameOf(conversation)
  useMarkRead(conversation, query.data?.pages[0]?.messages.at(-1)?.id)
  const title = customer ?? (query.isPending ? common.loading : t.missing)
  useEffect(() => setPageName(title), [title])

  // The head may need another line for the agent's name, so it is shown only after the name was loaded, or failed to.
  const isAgentLoading = isPending && failureCount === 0
  const isLoading = query.isPending || (conversation !== undefined && isAgentLoading)
  if (query.data === undefined || conversation === undefined || customer === null || isLoading) {
    return (
      <Frame search={search}>
        {isLoading ? (
          <>
            <h1 className="visually-hidden">{title}</h1>
            <Skeleton rows={4} person />
          </>
        ) : isUnknownId(query.error) ? (
          <>
            <h1 className="visually-hidden">{title}</h1>
            <Empty
              title={t.missing}
              lead={t.missingLead}
              action={<Link href={`/conversations${search}`}>{t.back}</Link>}
            />
          </>
        ) : (
          <>
            <h1 className="visually-hidden">{common.failed}</h1>
            <LoadError query={query} />
          </>
        )}
      </Frame>
    )
  }
  const mayAnswer = atLeast(user.role, "agent")
  const pages = query.data.pages.toReversed()
  return (
    <Frame search={search}>
      <header className={css["head"]}>
        <span className={css["avatar"]}>
          <Avatar name={customer} />
        </span>
        <div className={css["who"]}>
          <h1 className={css["name"]}>
            <bdi>{customer}</bdi>
          </h1>
          <span className={css["lead"]}>
            <Badge tone={tones[conversation.state]}>{names[conversation.state]}</Badge>
            <span className={css["where"]}>
              {[
                isChannel(conversation.channel) ? names[conversation.channel] : conversation.channel,
                agent?.name ?? ""
              ]
                .filter(Boolean)
                .join(" · ")}
            </span>
          </span>
        </div>
        <div className={css["actions"]}>
          {mayAnswer ? <ConversationActions conversation={conversation} /> : null}
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
        names={{ customer, agent: agent?.name ?? names.agent }}
        userId={user.id}
        typing={live.typing}
        tracedRunId={runId}
        onTrace={mayAnswer ? onTrace : null}
        onLoadOlder={query.hasNextPage ? () => void query.fetchNextPage() : null}
        isLoadingOlder={query.isFetchingNextPage}
        lastOwnKey={unsent.messages.at(-1)?.key}
      >
        <UnsentList {...unsent} />
      </Messages>
      {live.connected ? null : <p className={`${css["soft"]} ${css["live"]}`}>{t.quiet}</p>}
      {conversation.state === "CLOSED" ? <p className={css["soft"]}>{t.closed}</p> : null}
      {mayAnswer ? (
        <Composer
          id={id}
          customer={customer}
          customerName={conversation.customer}
          send={unsent.send}
          note={unsent.note}
          state={conversation.state}
        />
      ) : null}
    </Frame>
  )
}
