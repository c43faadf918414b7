import assert from "node:assert/strict";
import { test } from "node:test";
import { address, admin, login, signIn, world } from "./world.mjs";

const here = world({ isSignedIn: false });

async function fill(page, password) {
  await page.getByLabel("User").fill(login.user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

test("the root leads to the console", async () => {
  await here.page.goto(`${admin}/`);
  assert.equal(here.page.url(), address(""));
  await here.page.getByRole("heading", { name: "Sign in" }).waitFor();
});

test("a wrong password is refused and forgotten", async () => {
  await here.page.goto(address(""));
  await fill(here.page, "wrong");
  await here.page.getByRole("alert").getByText("is wrong").waitFor();
  assert.equal(await here.page.getByLabel("Password").inputValue(), "");
});

test("the right password opens the page that was asked for, and is kept nowhere", async () => {
  await here.page.goto(address("exchanges"));
  await fill(here.page, login.password);
  await here.page.getByRole("heading", { name: "Exchanges", exact: true }).waitFor();
  const kept = await here.page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie + location.href);
  assert.ok(!kept.includes(login.password));
  assert.ok(!kept.includes("imori_session"), "scripts cannot read the cookie");
});

test("signing out ends the session", async () => {
  await signIn(here.context);
  await here.page.goto(address(""));
  await here.page.getByRole("button", { name: "Sign out" }).click();
  await here.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await here.page.goto(address("queues"));
  await here.page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.equal((await here.context.request.get(`${admin}/v1/whoami`)).status(), 401);
});

test("a session that ended elsewhere shows the form and says why", async () => {
  await signIn(here.context);
  await here.page.goto(address("exchanges"));
  await here.page.getByRole("heading", { name: "Exchanges", exact: true }).waitFor();
  await here.context.request.delete(`${admin}/v1/session`, { headers: { "content-type": "application/json" } });
  await here.page.getByRole("button", { name: "Refresh" }).click();
  await here.page.getByText("Your session has ended").waitFor();
});

test("answers carry the content security policy", async () => {
  const response = await here.context.request.get(address(""));
  const policy = response.headers()["content-security-policy"];
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) assert.ok(policy.includes(part), part);
  assert.equal(response.headers()["x-content-type-options"], "nosniff");
});
