/** Budgets of model costs: admins create, change and remove them. Shows how much is spent. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { keys } from "../../api/Keys.ts"
import { type Budget, createBudget, deleteBudget, setLimit, usage, type Usage } from "../../api/Usage.ts"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { useAdding } from "../../components/Listing.tsx"
import { Section } from "../../components/Page.tsx"
import { RowActions } from "../../components/RowActions.tsx"
import { Table } from "../../components/Table.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { CreateActions } from "../../forms/CreateActions.tsx"
import { DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { parseNumber } from "../../text/parseNumber.ts"
import { words } from "./budgetWords.ts"
import css from "./Usage.module.css"

type Agents = Usage["agents"]

const nanoPerUsd = 1e9
const nanoOf = (usd: string) => Math.round(parseNumber(usd) * nanoPerUsd)
/** A positive amount with up to nine decimals. Three of them could be thousands: 1.000 is one or a thousand. */
const amount = "[0-9]+([.,]([0-9]{1,2}|[0-9]{4,9}))?|0[.,][0-9]{3}"
/** A stored amount as it could be typed. */
const typedAmount = (nanoUsd: number) => String(nanoUsd / nanoPerUsd).replace(/\.\d{3}$/, "$&0")

/** For the whole organisation, and for all keys. */
const all = "all"

interface KeyProps {
  readonly agentId: string
  readonly value: string
  readonly onChange: (keyId: string) => void
}

const KeyOf = ({ agentId, onChange, value }: KeyProps) => {
  const t = useText(words)
  const found = useAllPages(useInfiniteQuery(keys(agentId)), (page) => page.keys) ?? []
  const usable = found.filter(({ status }) => status !== "REVOKED")
  return (
    <Select
      label={t.key}
      options={[[all, t.allKeys] as const, ...usable.map(({ id, name }) => [id, name] as const)]}
      value={value}
      onChange={onChange}
    />
  )
}

const period = (): Budget["period"] => "month"
const emptyForm = { agentId: all, keyId: all, period: period(), usd: "" }

interface CreateProps {
  readonly agents: Agents
  readonly onClose: () => void
}

const Create = ({ agents, onClose }: CreateProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const draft = useDraft({ name: "budget", title: t.add, stored: emptyForm })
  const { change, value } = draft
  const subject = () => {
    if (value.agentId === all) return {}
    return value.keyId === all ? { agentId: value.agentId } : { keyId: value.keyId }
  }
  const create = useMutation({
    mutationFn: () => createBudget({ ...subject(), period: value.period, limitNanoUsd: nanoOf(value.usd) }),
    onSuccess: async () => {
      draft.saved()
      await queries.invalidateQueries({ queryKey: usage.queryKey })
      onClose()
    }
  })
  const { errorOf, general } = useIssues(create.error, ["limitNanoUsd"])
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <Select
        label={t.subject}
        options={[
          [all, t.organisation] as const,
          ...agents.map(({ agentId, name }) => [agentId, t.agent(name)] as const)
        ]}
        value={value.agentId}
        onChange={(agentId) => change({ agentId, keyId: all })}
      />
      {value.agentId === all ? null : (
        <KeyOf agentId={value.agentId} value={value.keyId} onChange={(keyId) => change({ keyId })} />
      )}
      <Select
        label={t.period}
        options={[["month", t.month] as const, ["day", t.day] as const]}
        value={value.period}
        onChange={(chosen) => change({ period: chosen })}
      />
      <TextField
        label={t.limit}
        help={t.limitHelp}
        guide="usage#budgets"
        inputMode="decimal"
        pattern={amount}
        required
        autoFocus
        value={value.usd}
        onChange={(usd) => change({ usd })}
        error={errorOf("limitNanoUsd")}
      />
      <CreateActions draft={draft} busy={create.isPending} onClose={onClose} />
    </Form>
  )
}

interface ChangeProps {
  readonly budget: Budget
  readonly onClose: () => void
}

const Change = ({ budget, onClose }: ChangeProps) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const draft = useDraft({
    name: `budget-${budget.id}`,
    title: t.changeTitle,
    stored: { usd: typedAmount(budget.limitNanoUsd) }
  })
  const save = useMutation({
    mutationFn: () => setLimit(budget, nanoOf(draft.value.usd)),
    onSuccess: async () => {
      draft.saved()
      await queries.invalidateQueries({ queryKey: usage.queryKey })
      onClose()
    }
  })
  const { errorOf, general } = useIssues(save.error, ["limitNanoUsd"])
  return (
    <Form onSubmit={() => save.mutate()} problem={general}>
      <TextField
        label={t.limit}
        inputMode="decimal"
        pattern={amount}
        required
        autoFocus
        value={draft.value.usd}
        onChange={(usd) => draft.change({ usd })}
        error={errorOf("limitNanoUsd")}
      />
      <Actions>
        <DraftState draft={draft} />
        <Button onClick={onClose}>{common.cancel}</Button>
        <Button kind="primary" type="submit" busy={save.isPending}>
          {common.save}
        </Button>
      </Actions>
    </Form>
  )
}

const shareOf = ({ limitNanoUsd, spentNanoUsd }: Budget) => spentNanoUsd / limitNanoUsd

/** The name of each budget. */
const useNames = (agents: Agents) => {
  const t = useText(words)
  return ({ agentId, keyId, period: of }: Budget) => {
    const name = agents.find((agent) => agent.agentId === agentId)?.name ?? agentId
    const subject = keyId === null ? (name === null ? t.organisation : t.agent(name)) : t.ofKey(keyId)
    return `${subject}, ${of === "day" ? t.day : t.month}`
  }
}

/** Shows budgets that are spent, or nearly spent. */
export const BudgetNotice = ({ agents, budgets }: Pick<Usage, "agents" | "budgets">) => {
  const t = useText(words)
  const nameOf = useNames(agents)
  const over = budgets.filter((budget) => shareOf(budget) >= 1).map(nameOf)
  const near = budgets.filter((budget) => shareOf(budget) >= 0.8 && shareOf(budget) < 1).map(nameOf)
  return (
    <>
      {over.length === 0 ? null : (
        <p role="alert" className={css["over"]}>
          {t.over(over.join("; "))}
        </p>
      )}
      {near.length === 0 ? null : (
        <p role="status" className={css["near"]}>
          {t.near(near.join("; "))}
        </p>
      )}
    </>
  )
}

interface Props extends Pick<Usage, "agents" | "budgets"> {
  readonly mayChange: boolean
}

export const Budgets = ({ agents, budgets, mayChange }: Props) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const { money, moment, percent } = useFormat()
  const nameOf = useNames(agents)
  const { button, dialog } = useAdding({
    title: t.add,
    isPlain: true,
    form: (close) => <Create agents={agents} onClose={close} />
  })
  return (
    <Section title={t.title} guide="usage#budgets" actions={mayChange ? button : undefined}>
      {dialog}
      {budgets.length === 0 ? (
        <p className={css["term"]}>{t.empty}</p>
      ) : (
        <Table
          label={t.title}
          rows={budgets}
          keyOf={({ id }) => id}
          columns={[
            { title: t.subject, cell: nameOf },
            {
              title: t.spent,
              end: true,
              cell: (budget) => (
                <>
                  {money(budget.spentNanoUsd)}{" "}
                  <span className={css["term"]}>
                    {t.ofLimit(money(budget.limitNanoUsd), percent(shareOf(budget)))}
                    {budget.reservedNanoUsd === 0 ? null : `, ${t.reserved(money(budget.reservedNanoUsd))}`}
                  </span>
                </>
              )
            },
            { title: t.resets, end: true, cell: ({ resetsAt }) => moment(resetsAt) },
            ...(mayChange
              ? [
                  {
                    title: t.actions,
                    silent: true,
                    end: true,
                    cell: (budget: Budget) => (
                      <RowActions
                        of={nameOf(budget)}
                        actions={[
                          {
                            label: t.change,
                            does: {
                              title: t.changeTitle,
                              form: (close) => <Change budget={budget} onClose={close} />
                            }
                          },
                          {
                            label: common.delete,
                            does: {
                              title: t.removal,
                              question: t.question(nameOf(budget)),
                              action: common.delete,
                              onConfirm: () =>
                                deleteBudget(budget.id).then(() =>
                                  queries.invalidateQueries({ queryKey: usage.queryKey })
                                )
                            }
                          }
                        ]}
                      />
                    )
                  }
                ]
              : [])
          ]}
        />
      )}
    </Section>
  )
}
