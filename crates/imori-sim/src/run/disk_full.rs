//! Disk room that other users of the disk take and give back, and slow disks.

use std::time::Duration;

use imori_core::confirm::Lsn;
use imori_core::name::Name;
use imori_core::time::Time;
use imori_store::journal::Watermark;

use super::simulation::Simulation;
use crate::broker_end::Phase;
use crate::client::Client;
use crate::model::Reads;
use crate::planted::Bug;
use crate::property::Property;

/// Interval at which the server checks the room while publishers wait.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Futile looks after which page writers have waited too long.
const LOOKS_OF_PAGER: usize = 4;

/// Futile looks after which only other users of the disk can make room.
const LOOKS_MAX: usize = 8;

/// Longest wait of publishers after a shortage has ended.
const END_MAX: Duration = Duration::from_secs(1);

/// The disk size, in journal files, that suffices if no message waits. It covers files in use,
/// ready and free, those that must be free before publishers continue, and rounding by the file
/// system.
const FILES_ENOUGH: u64 = 10;

impl Simulation {
    /// Lets the seed change the room that others take, make the disk fall behind, and let the
    /// server look at the room.
    pub(crate) fn change_room(&mut self) {
        if let Some(every) = self.workload.behind_every
            && self.shared.random.chance(1, every)
        {
            let is_over = self.shared.behind_bytes.get().is_some();
            let bytes = (!is_over).then(|| *self.shared.random.pick(&[0, 0, 4_096]));
            self.shared.behind_bytes.set(bytes);
        }
        let Some(every) = self.workload.room_every else { return };
        let random = &self.shared.random;
        let (changes, looks) = (random.chance(1, every), random.chance(1, every / 4));
        if changes {
            let log = self.shared.log.borrow();
            let is_taken = log.device.room_bytes() < u64::MAX;
            let takes = self.may_crash && (!is_taken || random.chance(1, 2));
            let used = log.device.used_bytes().expect("the simulated disk has a size");
            let left = random.below(usize::try_from(log.mark(6)).unwrap_or(usize::MAX)) as u64;
            drop(log);
            if takes {
                self.set_room(used + left);
            } else if is_taken && random.chance(1, 2) {
                self.set_room(u64::MAX);
            }
        }
        if looks {
            self.look_at_space();
        }
    }

    /// When the server looks at the room next, if publishers wait for it.
    pub(crate) fn next_look(&self) -> Option<Time> {
        let is_short = {
            let log = self.shared.log.borrow();
            !log.has_failed && (log.is_stalled() || log.is_space_low)
        };
        // The server also looks when no publisher waits, but the run does not depend on that.
        let waits = is_short || self.shared.memory.is_disk_alarmed();
        let (now, looked_at) = (self.shared.clock.get(), self.disk_full.looked_at);
        // Always later than now, whatever else happened meanwhile.
        let next = looked_at.after(LOOK_EVERY).max(now.after(Duration::from_micros(1)));
        (waits && self.disk_full.looks <= 2 * LOOKS_MAX).then_some(next)
    }

    /// Looks at the room when nothing else can happen. After some looks in vain, others free their
    /// space.
    pub(crate) fn look_in_vain(&mut self) {
        let used = self.shared.log.borrow().device.used_bytes().expect("the simulated disk has a size");
        // A checkpoint that has freed files since the last look has yet to show.
        let is_in_vain = std::mem::replace(&mut self.disk_full.used_bytes, used) <= used;
        self.disk_full.looks += usize::from(is_in_vain);
        self.shared.gives_up.set(self.disk_full.looks > LOOKS_OF_PAGER);
        let is_taken = self.shared.log.borrow().device.room_bytes() < u64::MAX;
        if self.disk_full.looks == LOOKS_MAX && is_taken {
            if self.shared.phase.get() == Phase::Serving {
                self.check_short();
                self.check_drained();
            }
            self.set_room(u64::MAX);
        }
        self.check_end_in_time();
        self.look_at_space();
    }

    /// Checks that publishers do not wait after the shortage ended: by now they must have been
    /// resumed.
    fn check_end_in_time(&self) {
        let (shared, now, ended_at) = (&self.shared, self.shared.clock.get(), self.disk_full.ended_at);
        let is_late = ended_at.is_some_and(|at| at.after(END_MAX) < now);
        if is_late && shared.memory.is_disk_alarmed() && shared.phase.get() == Phase::Serving {
            shared.violate(Property::Room, || {
                format!("publishers wait at {now:?} for room that there is since {ended_at:?}")
            });
        }
    }

    /// In some runs, takes so much room before the queues are drained that only draining relieves
    /// it.
    pub(crate) fn take_room(&mut self) {
        if self.workload.room_every.is_none() || self.shared.random.chance(1, 2) {
            return;
        }
        let room = {
            let log = self.shared.log.borrow();
            let used = log.device.used_bytes().expect("the simulated disk has a size");
            log.mark(FILES_ENOUGH).max(used + log.mark(self.shared.random.between(1, 2) as u64))
        };
        self.set_room(room);
    }

    fn set_room(&mut self, bytes: u64) {
        self.shared.trace.note(&[bytes], || format!("-- the disk has {bytes} bytes"));
        self.shared.log.borrow().device.set_room_bytes(bytes);
        self.disk_full.looks = 0;
        self.disk_full.ended_at = (bytes == u64::MAX).then(|| self.shared.clock.get());
    }

    /// Looks at the room like the server's watch does.
    pub(crate) fn look_at_space(&mut self) {
        let shared = &self.shared;
        if shared.log.borrow().has_failed {
            return;
        }
        let watermark = shared.log.borrow_mut().check_space();
        self.disk_full.looked_at = shared.clock.get();
        shared
            .trace
            .note(&[watermark as u64], || format!("-- the room on the disk is looked at: {watermark:?}"));
        let is_high = watermark == Watermark::High;
        if is_high {
            shared.memory.raise_disk_alarm();
        }
        // The checkpointer looks more often in the server, and may now have room for copies it
        // could not make.
        shared.threads.kept.set(Lsn::NONE);
        shared.threads.spared.set(0);
        if std::mem::replace(&mut self.disk_full.was_high, is_high)
            && !is_high
            && !shared.has(Bug::LostRoomEnd)
        {
            shared.cells.iter().for_each(|cell| cell.is_woken.set(true));
        }
        if !is_high && !shared.memory.is_disk_alarmed() {
            (self.disk_full.looks, self.disk_full.ended_at) = (0, None);
            shared.gives_up.set(false);
        }
    }

    /// Checks that clients which only read and settle are served while publishers wait.
    fn check_short(&self) {
        let shared = &self.shared;
        let mut waiting = Vec::new();
        shared.queues.each(|_, queue| waiting.push((queue.name().clone(), queue.ready_len())));
        // A publishing client waits, and so does everything it sent afterwards, even if it gave the
        // transaction up.
        let publishes = |client: &Client| {
            let is_on = |session: usize| {
                let session = self.model.sessions.get(session);
                session.is_some_and(|session| session.pipe == client.connection.pipe)
            };
            self.model
                .messages
                .iter()
                .any(|message| message.confirmed_at.is_none() && is_on(message.publisher))
        };
        let is_judged =
            |client: &Client| !client.is_ended() && client.connection.is_reading.get() && !client.operates();
        let only_reads = |client: &&Client| is_judged(client) && !publishes(client);
        for client in self.clients.iter().filter(only_reads) {
            let pipe = shared.network.pipe(client.connection.pipe);
            let (unread, unheard) = (pipe.to_server.len(), pipe.to_client.len());
            drop(pipe);
            if unread > 0 || unheard > 0 {
                shared.violate(Property::Room, || {
                    format!(
                        "{unread} bytes of session {}, which publishes nothing, are not read",
                        client.session
                    )
                });
            }
            for own in client.subscriptions.iter().filter(|own| own.is_active && !client.is_silent()) {
                let Some(record) = self.model.subscriptions.get(own.record) else { continue };
                let Reads::Queue(queue) = record.reads else { continue };
                let has_credit = self.model.has_credit(own.record);
                let name = &self.model.queue(queue).name;
                let is_it =
                    |(other, ready): &&(Name, usize)| other.as_bytes() == name.as_bytes() && *ready > 0;
                let is_apart = self.model.queue(queue).is_single_active;
                if has_credit && !is_apart && waiting.iter().any(|waiting| is_it(&waiting)) {
                    shared.violate(Property::Room, || {
                        format!(
                            "`{name}` has messages for `{}` of session {}, which has to wait for room",
                            own.id, client.session
                        )
                    });
                }
            }
        }
    }

    /// Checks that unneeded files do not cause the shortage.
    fn check_drained(&self) {
        let shared = &self.shared;
        let mut messages = 0;
        shared.queues.each(|_, queue| {
            messages += queue.ready_len() + queue.delayed_len() + queue.unsettled_len();
        });
        let log = shared.log.borrow();
        // With no room for even one file, settles cannot be recorded either.
        let (room, used) = (log.device.room_bytes(), log.device.used_bytes().unwrap_or(0));
        let is_enough =
            room >= log.mark(FILES_ENOUGH) && room.saturating_sub(used) >= log.mark(1) - log.mark(0);
        if messages == 0 && is_enough && !log.is_checkpoint_refused() {
            shared.violate(Property::Room, || {
                format!("publishers wait for room, nothing is in queues, and {used} of {room} bytes are used")
            });
        }
    }
}
