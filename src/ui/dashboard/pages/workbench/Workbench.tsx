/** The workbench of an agent: settings, a chat with it, and the evidence of its replies, side by side. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { Columns2, SquarePen } from "lucide-react"
import { useEffect, useState } from "react"
import { useLocation, useSearch } from "wouter"
import { allAgentVersions } from "../../api/Agents.ts"
import { atLeast } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { Select } from "../../components/Field.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AgentPart, type PartProps } from "../agents/AgentPart.tsx"
import { useAgentForm } from "../agents/useAgentForm.ts"
import { Advice } from "./Advice.tsx"
import { AskForm } from "./AskForm.tsx"
import { Compare } from "./Compare.tsx"
import { Evidence } from "./Evidence.tsx"
import { Messages } from "./Messages.tsx"
import { SettingsPane, settingsPaneFields } from "./SettingsPane.tsx"
import { testChatOf } from "./TestChat.ts"
import { useTestChat, useTurn } from "./useTestChat.ts"
import css from "./Workbench.module.css"

const words = texts(
  {
    draft: (name: string) => `Message to ${name}`,
    panes: "Parts of the workbench",
    settings: "Settings",
    chat: "Chat",
    evidence: "Evidence",
    answers: "Who answers",
    published: (version: number) => `Version ${version}, published`,
    changed: (version: number) => `Version ${version} with your changes`,
    version: (version: number) => `Version ${version}`,
    compare: "Compare",
    single: "One answer",
    fresh: "New conversation"
  },
  {
    draft: (name: string) => `Nachricht an ${name}`,
    panes: "Teile der Werkbank",
    settings: "Einstellungen",
    chat: "Gespräch",
    evidence: "Belege",
    answers: "Wer antwortet",
    published: (version: number) => `Version ${version}, veröffentlicht`,
    changed: (version: number) => `Version ${version} mit Ihren Änderungen`,
    version: (version: number) => `Version ${version}`,
    compare: "Vergleichen",
    single: "Eine Antwort",
    fresh: "Neues Gespräch"
  }
)

const icon = { "aria-hidden": true, size: 16, strokeWidth: 1.75 } as const

type Pane = "settings" | "chat" | "evidence"

const Workbench = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const mayChange = atLeast(user.role, "admin")
  const chat = testChatOf(user.id, agent.id)
  const form = useAgentForm(agent, settingsPaneFields)
  const versions = useAllPages(useInfiniteQuery(allAgentVersions(agent.id)), (page) => page.versions) ?? []
  const [version, setVersion] = useState(chat.version)
  const [pane, setPane] = useState<Pane>("chat")
  const [location, navigate] = useLocation()
  const isComparing = new URLSearchParams(useSearch()).has("compare")
  /** The reply whose evidence was opened, and a passage. Every click sets a new object, so that it scrolls again. */
  const [selection, setSelection] = useState<{ readonly id: string; readonly index: number | null } | null>(
    null
  )
  const state = useTestChat(chat)
  const { busy, messages } = state
  const replies = messages.filter(({ role }) => role === "assistant")
  const shown =
    replies.find(({ id }) => id === selection?.id) ??
    (messages.at(-1)?.role === "user" ? undefined : replies.at(-1))
  const isRunning = busy && (shown === undefined || shown === messages.at(-1))
  const shownIndex = shown === undefined ? messages.length : messages.indexOf(shown)
  const turn = useTurn(chat, messages[shownIndex - 1], shown, isRunning)

  const draft = version === undefined && mayChange ? form.trialSettings : undefined
  const draftJson = JSON.stringify(draft ?? null)
  useEffect(() => {
    const parsedDraft: typeof draft | null = JSON.parse(draftJson)
    chat.setTrial({ version, draft: parsedDraft ?? undefined })
  }, [chat, version, draftJson])

  const publishedTitle =
    draft === undefined ? t.published(agent.publishedVersion) : t.changed(agent.publishedVersion)
  const others = versions.map((each) => each.version).filter((each) => each !== agent.publishedVersion)
  const chosen = version === undefined ? "" : String(version)
  const options = [
    ["", publishedTitle] as const,
    ...[...new Set(version === undefined ? others : [...others, version])].map(
      (each) => [String(each), t.version(each)] as const
    )
  ]
  const tabs = [
    ["settings", t.settings],
    ["chat", t.chat],
    ...(isComparing ? [] : ([["evidence", t.evidence]] as const))
  ] as const
  const toggleComparison = () => {
    navigate(isComparing ? location : `${location}?compare`)
    setPane("chat")
  }
  const startConversation = () => {
    if (isComparing)
      for (const side of ["left", "right"] as const) testChatOf(user.id, agent.id, side).clear()
    else chat.clear()
  }
  return (
    <AgentPart
      part="try"
      agent={agent}
      user={user}
      actions={
        <>
          {isComparing ? null : (
            <Select
              compact
              label={t.answers}
              options={options}
              value={chosen}
              onChange={(next) => {
                const nextVersion = next === "" ? undefined : Number(next)
                chat.tryVersion(nextVersion)
                setVersion(nextVersion)
              }}
            />
          )}
          {isComparing || messages.length > 0 ? (
            <Button kind="quiet" onClick={startConversation}>
              <SquarePen {...icon} />
              <span className={css["label"]}>{t.fresh}</span>
            </Button>
          ) : null}
          <Button onClick={toggleComparison}>
            <Columns2 {...icon} />
            <span className={css["label"]}>{isComparing ? t.single : t.compare}</span>
          </Button>
        </>
      }
    >
      <div
        className={css["workbench"]}
        data-full=""
        data-pane={pane}
        data-comparing={isComparing ? "" : undefined}
      >
        <div className={css["switch"]} role="group" aria-label={t.panes}>
          {tabs.map(([id, title]) => (
            <button key={id} type="button" aria-pressed={pane === id} onClick={() => setPane(id)}>
              {title}
            </button>
          ))}
        </div>
        <section className={`${css["pane"]} ${css["settings"]}`} aria-label={t.settings}>
          <SettingsPane agent={agent} form={form} mayChange={mayChange} />
        </section>
        {isComparing ? (
          <section className={`${css["pane"]} ${css["chat"]}`} aria-label={t.compare}>
            <Compare
              agent={agent}
              user={user}
              draft={mayChange ? form.trialSettings : undefined}
              versions={others}
            />
          </section>
        ) : (
          <>
            <section className={`${css["pane"]} ${css["chat"]}`} aria-label={t.chat}>
              <Messages
                agent={agent}
                chat={chat}
                state={state}
                mayChange={mayChange}
                shownId={shown?.id}
                onShowEvidence={(id, index) => {
                  setSelection({ id, index })
                  setPane("evidence")
                }}
              >
                <Advice agentId={agent.id} mayChange={mayChange} />
              </Messages>
              <div className={css["compose"]}>
                <AskForm
                  busy={busy}
                  draft={{ name: `try.${agent.id}`, title: t.draft(agent.name) }}
                  onSend={(text, files) => {
                    setSelection(null)
                    chat.send(text, files)
                  }}
                  onStop={() => void chat.stop()}
                />
              </div>
            </section>
            <section className={`${css["pane"]} ${css["evidence"]}`} aria-label={t.evidence}>
              <Evidence
                turn={turn}
                isRunning={isRunning}
                marked={selection !== null && selection.id === shown?.id ? selection : null}
              />
            </section>
          </>
        )}
      </div>
    </AgentPart>
  )
}

export default Workbench
