/** Step four: the widget's colour, and the website that may show it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { Link } from "wouter"
import { isOutdated } from "../../api/Client.ts"
import { source, type SourceItem } from "../../api/Sources.ts"
import { patchWidget, questions, type Widget, widget as widgetQuery } from "../../api/Widgets.ts"
import { Button } from "../../components/Button.tsx"
import { ColorField } from "../../components/ColorField.tsx"
import { Loaded } from "../../components/Page.tsx"
import { Conflict } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Origins } from "../agents/OriginsField.tsx"
import { areOrigins, formOf, patchOf, shownOf } from "../widget/widgetForm.ts"
import { WidgetPreview } from "../widget/WidgetPreview.tsx"
import css from "./Start.module.css"

const words = texts(
  {
    title: (name: string) => `Widget of ${name}`,
    color: "Your colour",
    origins: "Websites that may show it",
    originsHelp: "One a line, such as https://www.example.com.",
    save: "Save and get the script",
    more: "More settings"
  },
  {
    title: (name: string) => `Widget von ${name}`,
    color: "Ihre Farbe",
    origins: "Websites, die es zeigen dürfen",
    originsHelp: "Je Zeile eine, etwa https://www.example.com.",
    save: "Speichern und Skript holen",
    more: "Weitere Einstellungen"
  }
)

interface Props {
  readonly agent: { readonly id: string; readonly name: string }
  /** The agent's sources: the first website is proposed. */
  readonly sources: ReadonlyArray<SourceItem>
  readonly onSaved: () => void
}

interface FormProps extends Omit<Props, "sources"> {
  readonly stored: Widget
  readonly proposed: { readonly origins: string; readonly suggestions: string }
}

const Fields = ({ agent, onSaved, proposed, stored }: FormProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const { queryKey } = widgetQuery(agent.id)
  const kept = formOf(stored)
  const begun = stored.version === 0 ? { ...kept, ...proposed } : kept
  const draft = useDraft({ name: `start.widget.${agent.id}`, title: t.title(agent.name), stored: begun })
  const { change, value } = draft
  const save = useMutation({
    mutationFn: () => patchWidget(agent.id, stored.version, patchOf(value)),
    onSuccess: (saved) => {
      draft.saved()
      queries.setQueryData(queryKey, saved)
      onSaved()
    },
    // The next attempt is based on what is stored by then.
    onError: (problem) => (isOutdated(problem) ? queries.invalidateQueries({ queryKey }) : undefined)
  })
  const { errorOf, general } = useIssues(save.error, ["allowedOrigins"])
  return (
    <div className={css["look"]}>
      <div className={css["fields"]}>
        <Form
          onSubmit={() => {
            if (areOrigins(value)) save.mutate()
          }}
          problem={isOutdated(general) ? null : general}
        >
          <Conflict draft={draft} problem={save.error} />
          <ColorField label={t.color} value={value.color} onChange={(color) => change({ color })} />
          <Origins
            label={t.origins}
            help={t.originsHelp}
            required
            value={value.origins}
            onChange={(origins) => change({ origins })}
            error={errorOf("allowedOrigins")}
          />
          <div className={css["row"]}>
            <Button kind="primary" type="submit" busy={save.isPending}>
              {t.save}
            </Button>
            <Link href={`/agents/${agent.id}/widget`}>{t.more}</Link>
          </div>
        </Form>
      </div>
      <WidgetPreview look={shownOf(value, agent)} />
    </div>
  )
}

const Look = ({ agent, onSaved, sources }: Props) => {
  const query = useQuery(widgetQuery(agent.id))
  const found = useQuery(questions(agent.id))
  const site = sources.findLast(({ type }) => type === "URL" || type === "SITEMAP")
  const detail = useQuery({ ...source(site?.id ?? ""), enabled: site !== undefined })
  const address = detail.data?.config.url ?? detail.data?.config.sitemapUrl ?? ""
  const proposed = {
    origins: URL.canParse(address) ? new URL(address).origin : "",
    suggestions: (found.data ?? []).join("\n")
  }
  // Proposals are loaded before the form, so that it does not change while it is being filled in.
  const isReady = !found.isLoading && !detail.isLoading
  return (
    <Loaded query={isReady ? query : { ...query, data: undefined, isPending: true }}>
      {(stored) => <Fields agent={agent} stored={stored} proposed={proposed} onSaved={onSaved} />}
    </Loaded>
  )
}

export default Look
