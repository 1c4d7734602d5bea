/** Details of a conversation: its person, assignee, labels and other conversations; or the trace of a reply. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
import { ArrowLeft, X } from "lucide-react"
import { type FormEvent, type ReactNode, useState } from "react"
import { Link } from "wouter"
import { agent as agentQuery } from "../../api/Agents.ts"
import {
  type Conversation,
  conversation as conversationQuery,
  trace,
  isChannel
} from "../../api/Conversations.ts"
import {
  addLabel,
  assign,
  inboxItems,
  type Label,
  person as personQuery,
  setLabels
} from "../../api/Inbox.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { members } from "../../api/Team.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { CopyableId } from "../../components/CopyableId.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { Loaded } from "../../components/Page.tsx"
import { SaveTestCase } from "../../components/replies/SaveTestCase.tsx"
import { Skeleton } from "../../components/feedback/Skeleton.tsx"
import { toast } from "../../components/feedback/Toast.tsx"
import { Trace } from "../../components/replies/Trace.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import type { Live } from "./useLive.ts"
import css from "./PersonPane.module.css"
import { useOptimisticChange } from "./useOptimisticChange.ts"
import { tones, useCustomer, useHandoffReason, words as sharedWords } from "./words.ts"

const words = texts(
  {
    details: "Details",
    hide: "Hide details",
    hideTrace: "Back to the details",
    assignee: "Assigned to",
    nobody: "Nobody",
    mine: (email: string) => `${email} (you)`,
    assignedTo: (who: string) => `Assigned to ${who}`,
    unassigned: "Assigned to nobody",
    labels: "Labels",
    labelsChanged: "Labels changed",
    editLabels: "Edit labels",
    doneLabels: "Done",
    newLabel: "New label",
    add: "Add",
    about: "About",
    reason: "Why a human",
    begun: "Begun",
    since: "Known since",
    id: "ID",
    phone: "Phone",
    contact: "Contact",
    others: "Other conversations",
    noOthers: "None besides this one",
    silent: "Nothing written yet"
  },
  {
    details: "Details",
    hide: "Details ausblenden",
    hideTrace: "Zurück zu den Details",
    assignee: "Zugewiesen an",
    nobody: "Niemand",
    mine: (email: string) => `${email} (Sie)`,
    assignedTo: (who: string) => `Zugewiesen an ${who}`,
    unassigned: "Niemandem zugewiesen",
    labels: "Labels",
    labelsChanged: "Labels geändert",
    editLabels: "Labels bearbeiten",
    doneLabels: "Fertig",
    newLabel: "Neues Label",
    add: "Hinzufügen",
    about: "Über das Gespräch",
    reason: "Warum ein Mensch",
    begun: "Begonnen",
    since: "Bekannt seit",
    id: "ID",
    phone: "Telefon",
    contact: "Kontakt",
    others: "Weitere Gespräche",
    noOthers: "Keine außer diesem",
    silent: "Noch nichts geschrieben"
  }
)

/** The option for no assignee. */
const nobody = "-"

const Assignee = ({ conversation, user }: { readonly conversation: Conversation; readonly user: User }) => {
  const t = useText(words)
  const names = useText(sharedWords)
  const change = useOptimisticChange(conversation)
  const allMembers = useAllPages(useInfiniteQuery(members), (page) => page.users) ?? []
  const team = allMembers.filter(({ role }) => atLeast(role, "agent"))
  const current = conversation.assignee
  const assignTo = async (
    to: Conversation["assignee"],
    before: Conversation["assignee"],
    isUndo: boolean
  ) => {
    const done = await change({ assignee: to }, { assignee: before }, () =>
      assign(conversation.id, to?.id ?? null)
    )
    if (!done || isUndo) return
    const text = to === null ? t.unassigned : t.assignedTo(to.email ?? names.former)
    toast(text, () => void assignTo(before, to, true))
  }
  const options: ReadonlyArray<readonly [string, string]> = [
    [nobody, t.nobody],
    ...team.map(({ email, id }) => [id, id === user.id ? t.mine(email) : email] as const),
    ...(current === null || team.some(({ id }) => id === current.id)
      ? []
      : [[current.id, current.email ?? names.former] as const])
  ]
  return (
    <Select
      label={t.assignee}
      options={options}
      value={current?.id ?? nobody}
      disabled={!atLeast(user.role, "agent")}
      onChange={(id) => {
        if (id === (current?.id ?? nobody)) return
        const member = team.find((one) => one.id === id)
        void assignTo(member === undefined ? null : { id: member.id, email: member.email }, current, false)
      }}
    />
  )
}

const labelTones: ReadonlyArray<Label["tone"]> = ["accent", "good", "warn", "bad", "neutral"]

interface LabelsProps {
  readonly conversation: Conversation
  readonly labels: ReadonlyArray<Label>
  readonly mayChange: boolean
}

const Labels = ({ conversation, labels, mayChange }: LabelsProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const reason = useReason()
  const change = useOptimisticChange(conversation)
  const [editing, setEditing] = useState(false)
  const [name, setName] = useState("")
  const chosen = conversation.labelIds
  const saveLabels = async (next: ReadonlyArray<string>, before: ReadonlyArray<string>, isUndo: boolean) => {
    const done = await change({ labelIds: next }, { labelIds: before }, () =>
      setLabels(conversation.id, next)
    )
    if (done && !isUndo) toast(t.labelsChanged, () => void saveLabels(before, next, true))
  }
  const create = async (event: FormEvent) => {
    event.preventDefault()
    const trimmedName = name.trim()
    if (trimmedName === "") return
    const existing = labels.find((label) => label.name.toLowerCase() === trimmedName.toLowerCase())
    try {
      const tone = labelTones[labels.length % labelTones.length] ?? "neutral"
      const id = existing?.id ?? (await addLabel(trimmedName, tone)).label.id
      await queries.invalidateQueries({ queryKey: ["inbox", "items"] })
      setName("")
      if (!chosen.includes(id)) await saveLabels([...chosen, id], chosen, false)
    } catch (problem) {
      toast(reason(problem).sentence)
    }
  }
  return (
    <section aria-label={t.labels} className={css["section"]}>
      <header className={css["title"]}>
        <h2>{t.labels}</h2>
        {mayChange ? (
          <Button kind="quiet" onClick={() => setEditing(!editing)} aria-expanded={editing}>
            {editing ? t.doneLabels : t.editLabels}
          </Button>
        ) : null}
      </header>
      {editing ? (
        <>
          <div className={css["labels"]}>
            {labels.map((label) => {
              const isSet = chosen.includes(label.id)
              return (
                <button
                  key={label.id}
                  type="button"
                  className={css["choice"]}
                  aria-pressed={isSet}
                  onClick={() =>
                    void saveLabels(
                      isSet ? chosen.filter((id) => id !== label.id) : [...chosen, label.id],
                      chosen,
                      false
                    )
                  }
                >
                  <Badge tone={label.tone}>{label.name}</Badge>
                </button>
              )
            })}
          </div>
          <form className={css["new"]} onSubmit={(event) => void create(event)}>
            <TextField label={t.newLabel} value={name} maxLength={60} onChange={setName} />
            <Button type="submit">{t.add}</Button>
          </form>
        </>
      ) : chosen.length === 0 ? null : (
        <div className={css["labels"]}>
          {labels
            .filter(({ id }) => chosen.includes(id))
            .map((label) => (
              <Badge key={label.id} tone={label.tone}>
                {label.name}
              </Badge>
            ))}
        </div>
      )}
    </section>
  )
}

const Facts = ({ facts }: { readonly facts: ReadonlyArray<readonly [string, ReactNode]> }) => (
  <dl className={css["facts"]}>
    {facts.map(([term, text], index) =>
      text === null ? null : (
        <div key={`${term} ${index}`}>
          <dt>{term}</dt>
          <dd>{text}</dd>
        </div>
      )
    )}
  </dl>
)

const About = ({
  conversation,
  search
}: {
  readonly conversation: Conversation
  readonly search: string
}) => {
  const t = useText(words)
  const names = useText(sharedWords)
  const { ago, moment } = useFormat()
  const reasonOf = useHandoffReason()
  const { data: agent } = useQuery(agentQuery(conversation.agentId))
  const query = useQuery(personQuery(conversation.id))
  const person = query.data
  return (
    <>
      <section aria-label={t.about} className={css["section"]}>
        <h2>{t.about}</h2>
        <Facts
          facts={[
            [t.reason, conversation.state === "AI_ACTIVE" ? null : reasonOf(conversation.handoffReason)],
            [names.agent, agent?.name ?? "–"],
            [
              names.channel,
              isChannel(conversation.channel) ? names[conversation.channel] : conversation.channel
            ],
            [t.begun, moment(conversation.createdAt)],
            ...(person?.contacts.map(
              ({ kind, value }) => [kind === "phone" ? t.phone : t.contact, value] as const
            ) ?? []),
            [t.since, person === undefined ? null : moment(person.createdAt)],
            [t.id, <CopyableId key="id" id={conversation.id} label={t.id} />]
          ]}
        />
      </section>
      <section aria-label={t.others} className={css["section"]}>
        <h2>{t.others}</h2>
        {person === undefined ? null : person.others.length === 0 ? (
          <p className={css["soft"]}>{t.noOthers}</p>
        ) : (
          <ul className={css["others"]}>
            {person.others.map((other) => (
              <li key={other.id}>
                <Link href={`/conversations/${other.id}${search}`}>{other.question ?? t.silent}</Link>
                <span className={css["soft"]}>
                  <Badge tone={tones[other.state]}>{names[other.state]}</Badge> {ago(other.updatedAt)}
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
    </>
  )
}

interface TraceSectionProps {
  /** The run of the selected reply; null shows the running turn. */
  readonly runId: string | null
  readonly live: Live
  /** The agent for which the turn can be saved as a test case; null if this person may not save one. */
  readonly testCaseAgentId: string | null
}

const TraceSection = ({ testCaseAgentId, live, runId }: TraceSectionProps) => {
  const query = useQuery({ ...trace(runId ?? ""), enabled: runId !== null })
  if (runId === null) return live.events.length === 0 ? null : <Trace events={live.events} />
  return (
    <Loaded query={query}>
      {({ agentVersion, cost, events, passages }) => (
        <>
          {testCaseAgentId === null ? null : (
            <div className={css["save"]}>
              <SaveTestCase key={runId} agentId={testCaseAgentId} runId={runId} />
            </div>
          )}
          <Trace runId={runId} cost={cost} events={events} passages={passages} version={agentVersion} />
        </>
      )}
    </Loaded>
  )
}

interface Props {
  readonly id: string
  readonly user: User
  readonly live: Live
  readonly search: string
  readonly runId: string | null
  readonly isOpen: boolean
  readonly onTrace: (runId: string | null) => void
  readonly onClose: () => void
}

export const PersonPane = ({ id, isOpen, live, onClose, onTrace, runId, search, user }: Props): ReactNode => {
  const t = useText(words)
  const nameOf = useCustomer()
  const query = useInfiniteQuery(conversationQuery(id, live.connected))
  const { data: items } = useQuery(inboxItems)
  const conversation = query.data?.pages[0]?.conversation
  if (conversation === undefined) {
    return (
      <aside className={css["pane"]} data-open={isOpen ? "" : undefined} aria-label={t.details}>
        {query.isPending ? <Skeleton rows={6} /> : null}
      </aside>
    )
  }
  return (
    <aside className={css["pane"]} data-open={isOpen ? "" : undefined} aria-label={t.details}>
      <header className={css["head"]}>
        {runId === null ? (
          <strong>{nameOf(conversation)}</strong>
        ) : (
          <Button kind="quiet" onClick={() => onTrace(null)}>
            <ArrowLeft aria-hidden size={16} />
            {t.hideTrace}
          </Button>
        )}
        <span className={css["hide"]}>
          <Button kind="quiet" icon aria-label={t.hide} onClick={onClose}>
            <X aria-hidden size={18} />
          </Button>
        </span>
      </header>
      {runId === null ? (
        <>
          <section className={css["section"]}>
            <Assignee conversation={conversation} user={user} />
          </section>
          <Labels
            conversation={conversation}
            labels={items?.labels ?? []}
            mayChange={atLeast(user.role, "agent")}
          />
          <About conversation={conversation} search={search} />
        </>
      ) : null}
      <TraceSection
        runId={runId}
        live={live}
        testCaseAgentId={atLeast(user.role, "admin") ? conversation.agentId : null}
      />
    </aside>
  )
}
