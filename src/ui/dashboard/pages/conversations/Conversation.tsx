/** One conversation as it goes on, and the means to step in. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useCallback, useState } from "react"
import { Link } from "wouter"
import { agent } from "../../api/Agents.ts"
import { act, conversation, type Conversation as Found, trace } from "../../api/Conversations.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { Card, Loaded, Page } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { SaveCase } from "../../components/SaveCase.tsx"
import { type RunEvent, Trace } from "../../components/Trace.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { LoadedPage } from "../LoadedPage.tsx"
import { Composer, Underway, useDrafts } from "./Composer.tsx"
import css from "./Conversation.module.css"
import { useLive } from "./live.ts"
import { Messages } from "./Messages.tsx"
import { tones, useHandoffReason, words as shared } from "./words.ts"

const words = texts(
  {
    back: "All conversations",
    takeover: "Take over",
    release: "Give back to the agent",
    close: "Close conversation",
    closeQuestion:
      "It cannot be opened again. A customer of a messaging channel who writes again begins a new one.",
    closed: "This conversation is closed. Nobody answers in it any more.",
    about: "About",
    reason: "Why a human",
    begun: "Begun",
    id: "Id",
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
    about: "Über das Gespräch",
    reason: "Warum ein Mensch",
    begun: "Begonnen",
    id: "Id",
    quiet: "Nicht verbunden. Neue Nachrichten kommen alle paar Sekunden."
  }
)

const Buttons = ({ found }: { readonly found: Found }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: ["conversations"] })
  const change = useMutation({
    mutationFn: (change: "takeover" | "release") => act(found.id, change),
    // A refusal too says that it is not as it looks here.
    onSettled: refresh
  })
  const { state } = found
  const open = state === "AI_ACTIVE" || state === "HUMAN_REQUESTED"
  return (
    <>
      {change.error === null ? null : <Problem problem={change.error} />}
      {open ? (
        <Button kind="primary" busy={change.isPending} onPress={() => change.mutate("takeover")}>
          {t.takeover}
        </Button>
      ) : null}
      {state === "HUMAN_ACTIVE" || state === "HUMAN_REQUESTED" ? (
        <Button busy={change.isPending} onPress={() => change.mutate("release")}>
          {t.release}
        </Button>
      ) : null}
      {state === "CLOSED" ? null : (
        <Confirm
          trigger={<Button kind="danger">{t.close}</Button>}
          title={t.close}
          question={t.closeQuestion}
          action={t.close}
          onConfirm={() => act(found.id, "close").finally(refresh)}
        />
      )}
    </>
  )
}

const About = ({ found }: { readonly found: Found }) => {
  const t = useText(words)
  const names = useText(shared)
  const { moment } = useFormat()
  const reasonOf = useHandoffReason()
  const { data } = useQuery(agent(found.agentId))
  const facts: ReadonlyArray<readonly [string, string | null]> = [
    [t.reason, found.state === "AI_ACTIVE" ? null : reasonOf(found)],
    [names.agent, data?.name ?? "–"],
    [names.channel, names[found.channel]],
    [t.begun, moment(found.createdAt)],
    [t.id, found.id]
  ]
  return (
    <Card title={t.about}>
      <dl className={css["facts"]}>
        {facts.map(([term, text]) =>
          text === null ? null : (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{text}</dd>
            </div>
          )
        )}
      </dl>
    </Card>
  )
}

interface RunProps {
  /** Of the reply whose trace was asked for; null shows the turn that is under way. */
  readonly runId: string | null
  readonly live: ReadonlyArray<RunEvent>
  /** The agent whose test cases a turn may be saved as one of; null where the user may not. */
  readonly caseOf: string | null
}

const Run = ({ caseOf, live, runId }: RunProps) => {
  const query = useQuery({ ...trace(runId ?? ""), enabled: runId !== null })
  if (runId === null) return live.length === 0 ? null : <Trace events={live} />
  return (
    <Loaded query={query}>
      {({ agentVersion, cost, events, passages }) => (
        <>
          {caseOf === null ? null : <SaveCase key={runId} agentId={caseOf} runId={runId} />}
          <Trace cost={cost} events={events} passages={passages} version={agentVersion} />
        </>
      )}
    </Loaded>
  )
}

const Conversation = ({ id, user }: { readonly id: string; readonly user: User }) => {
  const t = useText(words)
  const names = useText(shared)
  const queries = useQueryClient()
  const onChange = useCallback(
    () => void queries.invalidateQueries({ queryKey: ["conversations", "one", id] }),
    [queries, id]
  )
  const live = useLive(id, onChange)
  const query = useInfiniteQuery(conversation(id, live.connected))
  const drafts = useDrafts(user.id, id)
  const [runId, setRunId] = useState<string | null>(null)
  const may = atLeast(user.role, "agent")
  return (
    <LoadedPage query={query}>
      {({ pages }) => {
        const found = pages[0]?.conversation
        if (found === undefined) return null
        return (
          <Page
            title={found.customer ?? names.anonymous}
            lead={
              <span className={css["lead"]}>
                <Link href="/conversations">{t.back}</Link>
                <Badge tone={tones[found.state]}>{names[found.state]}</Badge>
              </span>
            }
            actions={may ? <Buttons found={found} /> : undefined}
          >
            <div className={css["columns"]}>
              <div className={css["chat"]}>
                <Messages
                  conversationId={id}
                  messages={pages.toReversed().flatMap((page) => page.messages)}
                  typing={live.typing}
                  chosen={runId}
                  onTrace={may ? setRunId : null}
                  older={query.hasNextPage ? () => void query.fetchNextPage() : null}
                  loading={query.isFetchingNextPage}
                >
                  <Underway {...drafts} />
                </Messages>
                {live.connected ? null : <p className={css["soft"]}>{t.quiet}</p>}
                {found.state === "CLOSED" ? (
                  <p className={css["soft"]}>{t.closed}</p>
                ) : may ? (
                  <Composer
                    id={id}
                    customer={found.customer ?? names.anonymous}
                    send={drafts.send}
                    state={found.state}
                  />
                ) : null}
              </div>
              <div className={css["side"]}>
                <About found={found} />
                <Run
                  runId={runId}
                  live={live.events}
                  caseOf={atLeast(user.role, "admin") ? found.agentId : null}
                />
              </div>
            </div>
          </Page>
        )
      }}
    </LoadedPage>
  )
}

export default Conversation
