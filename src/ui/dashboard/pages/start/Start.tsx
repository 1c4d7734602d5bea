/**
 * The guided start: from a homepage to a chat on it. The progress is derived from existing data, so it can be left at
 * any step.
 */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { lazy, useEffect, useState } from "react"
import { Link, useLocation, useSearchParams } from "wouter"
import type { User } from "../../api/Session.ts"
import { hasActiveJob, sources } from "../../api/Sources.ts"
import { dismissStart, scriptOf, type Start as StartProgress, start, widget } from "../../api/Widgets.ts"
import { Button } from "../../components/Button.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Loaded, Page } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { QuestionStep } from "./QuestionStep.tsx"
import { ContentStep } from "./ContentStep.tsx"
import css from "./Start.module.css"
import { Step } from "./Step.tsx"

const WidgetStep = lazy(() => import("./WidgetStep.tsx"))
const ReadingStep = lazy(() => import("./ReadingStep.tsx"))

const words = texts(
  {
    title: "Start",
    lead: "From your website to a chat that answers from it, in five steps. Leave at any time: what is done stays done.",
    finished: "Everything is set up. Your agent answers.",
    later: "Not now",
    content: "Your content",
    reading: "Reading",
    ask: "Ask a question",
    look: "Your colour",
    script: "Put it on your page",
    sources: (count: number) => (count === 1 ? "1 source" : `${count} sources`),
    documents: (count: number) => (count === 1 ? "1 page" : `${count} pages`),
    moving: "Reading …",
    scriptLabel: "Script",
    scriptHelp:
      "Paste this line before </body> on every page that should have the chat. It stays the same whatever you change later.",
    first: "Save the colour first; then the line is here.",
    sample: (name: string) => `Or look around first, with the sample agent “${name}”.`,
    more: "Add more content",
    another: "Set up another agent",
    agent: (name: string) => `Agent: ${name}`
  },
  {
    title: "Erste Schritte",
    lead: "Von Ihrer Website zu einem Chat, der aus ihr antwortet, in fünf Schritten. Aufhören geht jederzeit: Was getan ist, bleibt getan.",
    finished: "Alles ist eingerichtet. Ihr Agent antwortet.",
    later: "Nicht jetzt",
    content: "Ihr Inhalt",
    reading: "Lesen",
    ask: "Eine Frage stellen",
    look: "Ihre Farbe",
    script: "Auf Ihre Seite setzen",
    sources: (count: number) => (count === 1 ? "1 Quelle" : `${count} Quellen`),
    documents: (count: number) => (count === 1 ? "1 Seite" : `${count} Seiten`),
    moving: "Wird gelesen …",
    scriptLabel: "Skript",
    scriptHelp:
      "Diese Zeile vor </body> in jede Seite einfügen, die den Chat haben soll. Sie bleibt gleich, was auch später geändert wird.",
    first: "Bitte zuerst die Farbe speichern; dann steht die Zeile hier.",
    sample: (name: string) => `Oder sich erst umsehen, mit dem Beispielagenten „${name}“.`,
    more: "Mehr Inhalt hinzufügen",
    another: "Einen weiteren Agenten einrichten",
    agent: (name: string) => `Agent: ${name}`
  }
)

const Script = ({ agentId }: { readonly agentId: string }) => {
  const t = useText(words)
  const query = useQuery(widget(agentId))
  return (
    <Loaded query={query}>
      {({ publicId }) =>
        publicId === null ? (
          <p className={css["soft"]}>{t.first}</p>
        ) : (
          <>
            <Copyable label={t.scriptLabel} value={scriptOf(publicId)} />
            <p className={css["soft"]}>{t.scriptHelp}</p>
          </>
        )
      }
    </Loaded>
  )
}

interface Props {
  readonly progress: StartProgress
  readonly user: User
  readonly onChooseAgent: (agentId: string) => void
}

const Steps = ({ onChooseAgent, progress, user }: Props) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const { agent, documents, sample, tried } = progress
  const agentId = agent?.id ?? ""
  const { data } = useInfiniteQuery(sources(agentId))
  const rows = data?.pages.flatMap((page) => page.sources) ?? []
  const isReading = rows.some(hasActiveJob)
  const statuses = rows.map(({ id, status }) => `${id} ${status}`).join()
  // Counts and questions change when the state of a source changes, so they are loaded again.
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: ["start"] })
    void queries.invalidateQueries({ queryKey: ["agents", agentId, "questions"] })
  }, [queries, agentId, isReading, statuses])
  const isRead = documents > 0 && !isReading
  const done = [progress.sources > 0, isRead, isRead && tried, progress.widget, progress.finished]
  const current = done.indexOf(false)
  const [chosen, setChosen] = useState<number | null>(null)
  // The next step opens by itself once this one is done.
  useEffect(() => setChosen(null), [current])
  // Without an open step, the script is shown: people come back for it.
  const open = chosen ?? (current === -1 ? 4 : current)
  const step = (index: number) => ({
    number: index + 1,
    isDone: done[index] === true,
    isOpen: open === index,
    onToggle: () => setChosen(open === index ? -1 : index)
  })
  return (
    <>
      {agent === null ? null : (
        <div className={css["row"]}>
          <Link href={`/agents/${agent.id}`}>{t.agent(agent.name)}</Link>
          {progress.finished ? <span role="status">{t.finished}</span> : null}
        </div>
      )}
      <ol className={css["steps"]}>
        <Step
          {...step(0)}
          title={t.content}
          state={progress.sources === 0 ? undefined : t.sources(progress.sources)}
        >
          <ContentStep
            agentId={agent?.id ?? null}
            onAdded={(id) => {
              onChooseAgent(id)
              void queries.invalidateQueries({ queryKey: ["sources"] })
              void queries.invalidateQueries({ queryKey: ["start"] })
            }}
          />
          {sample === null || agent !== null ? null : (
            <p>
              <Link href={`/agents/${sample.id}/try`}>{t.sample(sample.name)}</Link>
            </p>
          )}
        </Step>
        <Step
          {...step(1)}
          title={t.reading}
          state={isReading ? t.moving : documents === 0 ? undefined : t.documents(documents)}
        >
          <ReadingStep sources={rows} documents={documents} isReading={isReading} />
          {rows.length === 0 ? null : (
            <div>
              <Button kind="quiet" onClick={() => setChosen(0)}>
                {t.more}
              </Button>
            </div>
          )}
        </Step>
        <Step {...step(2)} title={t.ask} isLoaded={documents > 0}>
          <QuestionStep agentId={agentId} user={user} hasContent={documents > 0} />
        </Step>
        <Step {...step(3)} title={t.look} isLoaded={agent !== null}>
          {agent === null ? (
            <p className={css["soft"]}>{t.first}</p>
          ) : (
            <WidgetStep
              agent={agent}
              sources={rows}
              onSaved={() => {
                setChosen(4)
                void queries.invalidateQueries({ queryKey: ["start"] })
              }}
            />
          )}
        </Step>
        <Step {...step(4)} title={t.script}>
          {agent === null ? <p className={css["soft"]}>{t.first}</p> : <Script agentId={agent.id} />}
        </Step>
      </ol>
      {progress.finished ? (
        <div>
          <Button kind="quiet" onClick={() => navigate("/agents")}>
            {t.another}
          </Button>
        </div>
      ) : null}
    </>
  )
}

const Start = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const [parameters, setParameters] = useSearchParams()
  const query = useQuery(start(parameters.get("agent")))
  const dismiss = useMutation({
    mutationFn: () => dismissStart(true),
    onSuccess: async () => {
      navigate("/agents")
      await queries.invalidateQueries({ queryKey: ["start"] })
    }
  })
  const canDismiss = query.data !== undefined && !query.data.finished && !query.data.dismissed
  return (
    <Page
      title={t.title}
      lead={t.lead}
      narrow
      actions={
        canDismiss ? (
          <Button kind="quiet" busy={dismiss.isPending} onClick={() => dismiss.mutate()}>
            {t.later}
          </Button>
        ) : undefined
      }
    >
      {dismiss.error === null ? null : <Problem problem={dismiss.error} />}
      <Loaded query={query}>
        {(progress) => (
          <Steps
            progress={progress}
            user={user}
            onChooseAgent={(agent) => setParameters({ agent }, { replace: true })}
          />
        )}
      </Loaded>
    </Page>
  )
}

export default Start
