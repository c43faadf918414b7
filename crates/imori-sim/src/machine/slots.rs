//! Tables of values by slot and generation, as in the server; locks are kept elsewhere.

use std::cell::RefCell;
use std::rc::Rc;

/// A value with its generation, which counts the earlier uses of the slot.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    pub(crate) generation: u32,
    pub(crate) value: Option<T>,
}

/// Values by slot.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: RefCell<Vec<Rc<RefCell<Slot<T>>>>>,
    free: RefCell<Vec<u32>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { slots: RefCell::default(), free: RefCell::default() }
    }
}

impl<T> Slots<T> {
    /// Inserts the value that `make` creates from its slot and generation.
    pub(crate) fn insert(&self, make: impl FnOnce(u32, u32) -> T) -> (u32, u32) {
        let free = self.free.borrow_mut().pop();
        let index = match free {
            Some(index) => index,
            None => {
                let mut slots = self.slots.borrow_mut();
                slots.push(Rc::new(RefCell::new(Slot { generation: 0, value: None })));
                u32::try_from(slots.len() - 1).expect("a run has few of anything")
            }
        };
        let slot = self.slot(index).expect("it was free or is new");
        let mut slot = slot.borrow_mut();
        slot.value = Some(make(index, slot.generation));
        (index, slot.generation)
    }

    /// The slot with this number.
    pub(crate) fn slot(&self, index: u32) -> Option<Rc<RefCell<Slot<T>>>> {
        self.slots.borrow().get(index as usize).cloned()
    }

    /// Makes a slot reusable after its value was taken.
    pub(crate) fn release(&self, index: u32) {
        self.free.borrow_mut().push(index);
    }

    /// Drops every value.
    pub(crate) fn clear(&self) {
        self.slots.borrow_mut().clear();
    }

    /// The number of slots ever used.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.slots.borrow().len()).expect("a run has few of anything")
    }

    /// Visits each value without its lock; only the run's own checks may do so.
    pub(crate) fn each(&self, mut look: impl FnMut(u32, &mut T)) {
        for (index, slot) in (0..).zip(self.slots.borrow().iter()) {
            if let Some(value) = &mut slot.borrow_mut().value {
                look(index, value);
            }
        }
    }
}

impl<T> Slot<T> {
    /// The value, if it has this generation.
    pub(crate) fn of(&mut self, generation: u32) -> Option<&mut T> {
        if self.generation == generation { self.value.as_mut() } else { None }
    }

    /// Takes the value for good, if it has this generation.
    pub(crate) fn remove(&mut self, generation: u32) -> Option<T> {
        if self.generation != generation {
            return None;
        }
        let value = self.value.take()?;
        self.generation = self.generation.wrapping_add(1);
        Some(value)
    }
}
